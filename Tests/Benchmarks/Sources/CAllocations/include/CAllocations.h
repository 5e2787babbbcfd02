// Counts what a thread asks the allocator for.
//
// Linked into a program, the functions of this target are found before those of the C library, by
// the program and by every library it loads, the Swift runtime and OpenSSL included.
#ifndef CALLOCATIONS_H
#define CALLOCATIONS_H

#include <stdint.h>

// Allocations of the calling thread since it began: malloc, calloc, realloc and the aligned ones.
uint64_t callocations_count(void);

#endif
