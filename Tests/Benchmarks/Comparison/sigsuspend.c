// Loaded before a program that callgrind runs. valgrind 3.19 writes into the signal set that
// sigsuspend(2) gets, and dies where the set is constant, as that of Dispatch's main thread is.
// This hands it a copy.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *set) {
    sigset_t copy = *set;
    return (int)syscall(SYS_rt_sigsuspend, &copy, _NSIG / 8);
}
