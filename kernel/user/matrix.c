/* matrix [SIZE]: the product of two matrices, and a sum over it. */
#include "library.h"

int run(void)
{
    const char *text = argument(1);
    size_t size = text ? parse_number(text) : 256;
    double *left = map_memory(size * size * sizeof *left);
    double *right = map_memory(size * size * sizeof *right);
    double *product = map_memory(size * size * sizeof *product);
    if (!left || !right || !product) {
        print("matrix: can't map that much\n");
        return 1;
    }
    for (size_t at = 0; at < size * size; at++) {
        left[at] = (double)(at % 17);
        right[at] = (double)(at % 23);
    }
    for (size_t row = 0; row < size; row++)
        for (size_t middle = 0; middle < size; middle++)
            for (size_t column = 0; column < size; column++)
                product[row * size + column] += left[row * size + middle] * right[middle * size + column];
    double sum = 0;
    for (size_t at = 0; at < size * size; at++)
        sum += product[at] * (double)(at % 5);
    print_number((uint64_t)sum);
    print("\n");
    return 0;
}
