// What the `build` workload compiles: few lines, many templates. The compiler instantiates
// Eigen's decompositions, which takes it some hundreds of megabytes.
#include <Eigen/Dense>
#include <Eigen/SparseCholesky>

namespace {

double dense(unsigned seed) {
  std::srand(seed);
  const Eigen::MatrixXd a = Eigen::MatrixXd::Random(40, 40);
  const Eigen::VectorXd b = a.col(0) + a.col(39);
  Eigen::VectorXd x = a.partialPivLu().solve(b);
  x += a.householderQr().solve(b);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> symmetric(a + a.transpose());
  return x.sum() + symmetric.eigenvalues().sum();
}

double sparse(unsigned seed) {
  Eigen::SparseMatrix<double> a(200, 200);
  for (int row = 0; row < 200; ++row) {
    a.insert(row, row) = 4.0 + seed % 7;
    if (row > 0) {
      a.insert(row, row - 1) = -1.0;
      a.insert(row - 1, row) = -1.0;
    }
  }
  a.makeCompressed();
  const Eigen::VectorXd b = Eigen::VectorXd::Ones(200);
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> direct(a);
  return direct.solve(b).sum();
}

}  // namespace

int main(int count, char **) {
  const unsigned seed = static_cast<unsigned>(count);
  return dense(seed) + sparse(seed) > -1e9 ? 0 : 1;
}
