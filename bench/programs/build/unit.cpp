// One of many translation units: the same templates, instantiated for sizes that depend on UNIT.
// Every fourth takes more memory than the others, as in programs that people write.
#include <Eigen/Core>
#if UNIT % 4 == 0
#include <Eigen/LU>
#endif
#include <functional>
#include <iostream>
#include <map>
#include <string>

#define NAME(unit) NAME_OF(unit)
#define NAME_OF(unit) unit_##unit

template <int Size> double solve(double seed) {
  using Matrix = Eigen::Matrix<double, Size, Size>;
  Matrix matrix;
  for (int row = 0; row < Size; ++row)
    for (int column = 0; column < Size; ++column)
      matrix(row, column) = 1.0 / (1.0 + row + seed * column);
  double sum = (matrix * matrix.transpose() + matrix).trace();
#if UNIT % 4 == 0
  sum += matrix.partialPivLu().determinant();
#endif
  return sum;
}

double NAME(UNIT)(double seed) {
  std::map<std::string, std::function<double(double)>> found;
  for (const char *name : {"ab", "abc", "x1b", "y2c"})
    found[name] = [name](double value) { return value * name[0]; };
  double sum = solve<UNIT + 2>(seed);
  for (const auto &[name, function] : found) sum += function(seed) + name.size();
  if (sum < 0) std::cerr << sum << '\n';
  return sum;
}
