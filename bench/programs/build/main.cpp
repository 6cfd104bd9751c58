// Calls every unit, and prints what they come to.
#include <cstdio>

#define EACH(what)                                                                                \
  what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9) what(10) what(11)       \
      what(12) what(13) what(14) what(15) what(16)
#define DECLARE(unit) double unit_##unit(double seed);
#define ADD(unit) sum += unit_##unit(1.5);

EACH(DECLARE)

int main() {
  double sum = 0;
  EACH(ADD)
  std::printf("%.6f\n", sum);
}
