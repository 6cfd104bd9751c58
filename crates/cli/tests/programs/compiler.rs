//! g++ on a program with heavy templates: one large child that allocates by itself.

use super::needs;
use super::scratch::Scratch;
use super::trial::Trial;

/// The source that is compiled. `FULL` brings decompositions that instantiate most of the library.
const SOURCE: &str = r"
#ifdef FULL
#include <eigen3/Eigen/Dense>
#else
#include <eigen3/Eigen/Core>
#endif

template <int Size> double solve(double seed) {
    Eigen::Matrix<double, Size, Size> matrix;
    for (int row = 0; row < Size; ++row)
        for (int column = 0; column < Size; ++column)
            matrix(row, column) = 1.0 / (1.0 + row + seed * column);
    Eigen::Matrix<double, Size, 1> right = matrix.rowwise().sum();
    double sum = (matrix * matrix.transpose() + matrix).trace();
#ifdef FULL
    sum += matrix.partialPivLu().solve(right).norm();
    sum += matrix.householderQr().solve(right).norm();
    sum += matrix.jacobiSvd(Eigen::ComputeFullU | Eigen::ComputeFullV).solve(right).norm();
    sum += Eigen::SelfAdjointEigenSolver<decltype(matrix)>(matrix).eigenvalues().sum();
#endif
    return sum;
}

double all(double seed) {
    double sum = solve<3>(seed);
#ifdef FULL
    sum += solve<4>(seed) + solve<5>(seed) + solve<6>(seed) + solve<7>(seed) + solve<8>(seed);
#endif
    return sum;
}
";

#[test]
fn a_compiler_writes_the_same_object() {
    if !needs::are_met(&["g++"]) {
        return;
    }
    if needs::find("../include/eigen3/Eigen/Dense").is_none() {
        needs::lacks("Eigen is not installed (`scripts/deps test`)");
        return;
    }
    let scratch = Scratch::new("compiler");
    let source = scratch.write("solve.cpp", SOURCE).display().to_string();
    let mut arguments = vec!["g++", "-O2", "-c", &source, "-o", "solve.o"];
    if needs::is_full() {
        arguments.push("-DFULL");
    }
    Trial::new("compiler", &scratch, &arguments).compare();
}
