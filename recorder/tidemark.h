/* Names the phases of a program for `tidemark record`.

   Copyright (c) The Tidemark contributors. Permission is granted to anyone to use, copy, change
   and distribute this file for any purpose, with or without this notice; it comes without any
   warranty. (This file alone: the rest of this folder has a licence of its own.)

      #include "tidemark.h"
      TIDEMARK_MARK("loading");

   Costs a few instructions and does nothing when the program isn't being recorded. Needs no
   library. GCC or Clang; on other processors than x86-64 and aarch64 it does nothing. */

#ifndef TIDEMARK_H
#define TIDEMARK_H

/* The number of the request: the tool's letters, then a count from 0. */
#define TIDEMARK_REQUEST_MARK (((unsigned long)('T' & 0xff) << 24) | ((unsigned long)('M') << 16))

/* Begins the phase `name`, a text. Gives 1 if a recorder has taken it, else 0. */
#define TIDEMARK_MARK(name) tidemark_request_((TIDEMARK_REQUEST_MARK), (const char*)(name))

static inline __attribute__((unused)) unsigned long tidemark_request_(unsigned long request,
                                                                    const char* text)
{
   unsigned long result = 0;
   /* Valgrind knows a request by rotations that together do nothing. */
   volatile unsigned long words[6] = { request, (unsigned long)text, 0, 0, 0, 0 };
#if defined(__x86_64__) && defined(__GNUC__)
   __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\t"
                    "rolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                    "xchgq %%rbx, %%rbx"
                    : "=d"(result)
                    : "a"(&words[0]), "0"(result)
                    : "cc", "memory");
#elif defined(__aarch64__) && defined(__GNUC__)
   register volatile unsigned long* x4 __asm__("x4") = &words[0];
   register unsigned long x3 __asm__("x3") = result;
   __asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\t"
                    "ror x12, x12, #51\n\tror x12, x12, #61\n\t"
                    "orr x10, x10, x10"
                    : "+r"(x3)
                    : "r"(x4)
                    : "cc", "memory");
   result = x3;
#else
   (void)words;
#endif
   return result;
}

#endif
