/*
 * What the models of this folder promise. `promise(twice, ...)` stops the search where it does not
 * hold. -DONLY_x looks at one promise alone, so that a mutation is refuted by the promise that it
 * is made for.
 */
#if !defined(ONLY_twice) && !defined(ONLY_lost) && !defined(ONLY_revoked) \
    && !defined(ONLY_fell) && !defined(ONLY_undone)
#define ONLY_twice
#define ONLY_lost
#define ONLY_revoked
#define ONLY_fell
#define ONLY_undone
#endif

bit broken_twice, broken_lost, broken_revoked, broken_fell, broken_undone;

/* No assertion, and no number of a session, is admitted twice. */
#ifdef ONLY_twice
#define CHECK_twice 1
#else
#define CHECK_twice 0
#endif
/* A key that was answered 201 is never lost. */
#ifdef ONLY_lost
#define CHECK_lost 1
#else
#define CHECK_lost 0
#endif
/* A revoked key is refused from the moment the command returned. */
#ifdef ONLY_revoked
#define CHECK_revoked 1
#else
#define CHECK_revoked 0
#endif
/* A stored counter never goes down. */
#ifdef ONLY_fell
#define CHECK_fell 1
#else
#define CHECK_fell 0
#endif
/* An order that reduces refusals is never undone by an older one. */
#ifdef ONLY_undone
#define CHECK_undone 1
#else
#define CHECK_undone 0
#endif

#define promise(name, holds) broken_##name = CHECK_##name && !(holds); assert(!broken_##name)

#define BIT(a) (1 << (a))
#define BELOW(a) (BIT(a) - 1)
