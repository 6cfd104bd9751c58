// A small template-heavy program: what the quick `tcm3` compiles, in some 180 MiB.
#include <Eigen/Core>

double product(const Eigen::Matrix3d& a) { return (a * a.transpose()).sum(); }
