// Shows the thread sanitizer what Swift's Synchronization.Mutex does.
//
// On Linux its fast paths are atomics in our own code, which is instrumented. Its slow paths are in
// libswiftSynchronization.so, which is not, and end in futexes that the kernel hands over: a thread
// that had to wait for the lock seems to have come by without one, and all that the lock guards is
// reported as a race. This library stands before the slow paths and says the two things that are
// missing. Nothing is suppressed: an access without the lock is reported as ever.
//
// deploy/test builds it and preloads it under --sanitize=thread. Programs without the sanitizer that
// inherit it are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *lock
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// Absent where there is no sanitizer.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool try_lock_slow(SELF) __asm__(TRY);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK);

SWIFT void lock_slow(uint32_t thread, SELF) {
    ((SWIFT void (*)(uint32_t, SELF))dlsym(RTLD_NEXT, LOCK))(thread, lock);
    if (__tsan_acquire) __tsan_acquire(lock);
}

SWIFT bool try_lock_slow(SELF) {
    bool is_ours = ((SWIFT bool (*)(SELF))dlsym(RTLD_NEXT, TRY))(lock);
    if (is_ours && __tsan_acquire) __tsan_acquire(lock);
    return is_ours;
}

SWIFT void unlock_slow(SELF) {
    if (__tsan_release) __tsan_release(lock);
    ((SWIFT void (*)(SELF))dlsym(RTLD_NEXT, UNLOCK))(lock);
}
