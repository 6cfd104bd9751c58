// Few lines, many templates: what the compiler holds while it instantiates one of Eigen's
// decompositions.
#include <Eigen/Dense>

int main(int count, char **) {
  std::srand(static_cast<unsigned>(count));
  const Eigen::MatrixXd a = Eigen::MatrixXd::Random(40, 40);
  const Eigen::VectorXd b = a.col(0) + a.col(39);
  const Eigen::VectorXd x = a.partialPivLu().solve(b);
  return x.sum() > -1e9 ? 0 : 1;
}
