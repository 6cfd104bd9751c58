// The sine of a matrix: a few lines that take the compiler some 700 MiB. `tcm3 --full` compiles it.
#include <Eigen/Dense>
#include <unsupported/Eigen/MatrixFunctions>

int main() {
  const Eigen::MatrixXd a = Eigen::MatrixXd::Random(3, 3);
  return a.sin().sum() > 0 ? 1 : 0;
}
