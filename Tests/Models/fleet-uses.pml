/*
 * A fleet's assertions: gateways on one PostgreSQL with a standby, and a failover that keeps what was answered or one
 * that loses the last transactions. Gateways are cut off, wait too long, and start again.
 *
 * Assertions of one key, each sent to any gateway as often as anybody likes. The database takes counter and challenge
 * together, so one bit stands for both. A second key is enrolled meanwhile, and the first one is revoked.
 *
 *   step        code
 *   ask         KeyTable.consume, Committer.append; WaitingUse.refusal
 *   decide      UseStatement.sql, PostgreSQLKeyJournal.commit
 *   answer      WaitingUse.settle(.used); Exchange.committed
 *   fail        WaitingUse.settle(.failed), Committer.expire: used in memory, kept, answered 503
 *   keep        PendingChanges.retain; CounterColumns.statement: what was kept is merged
 *   enrol       KeyColumns.insert; KeyTable.enrol
 *   revoke      PostgreSQLKeyArchive.revoke
 *   start       KeyTable.init: PostgreSQLKeyJournal.load
 *   replicate, fail over   PostgreSQL, with `synchronous_standby_names` or without
 *
 * Assumed: a server that was replaced answers nobody (fencing); rules with `on_error: refuse`. After a failover that
 * has lost transactions, the promises hold for what is left: deploy/docs/fleet.md says so.
 *
 *   variant                promise that it breaks
 *   MUTATE_memoryDecides   twice    a gateway decides by its own memory
 *   MUTATE_twoStatements   twice    the database compares and takes in two steps
 *   MUTATE_failedForwards  twice    what the database did not answer goes on
 *   MUTATE_answersEarly    lost     201 before the standby has the key
 *   MUTATE_unchecked       revoked  the statement does not look whether the key is revoked
 *   MUTATE_overwrite       fell     counters that were kept replace those of the database
 */
#include "promises.h"
#ifndef GATEWAYS
#define GATEWAYS 2
#endif
#ifndef ASSERTIONS
#define ASSERTIONS 2
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif

/* The database, and its standby. */
typedef Server { byte used; bit revoked, enrolled }
Server primary, standby;
bit isSynchronous;
byte failovers, restarts;

/* Gateways: used assertions in memory, those that are kept for later, asked about, and decided but not answered. */
byte used[GATEWAYS], kept[GATEWAYS], asked[GATEWAYS], done[GATEWAYS];
#ifdef MUTATE_twoStatements
byte compared[GATEWAYS];
#endif
bit knowsRevoked[GATEWAYS];
bit enrols, isRevoking;

/* What was promised. */
byte admitted, floor;
bit answered201, revocationReturned;

/* What a synchronous standby does not have is not answered. */
#ifdef MUTATE_answersEarly
#define IS_SAFE(what) 1
#else
#define IS_SAFE(what) (!isSynchronous || (what))
#endif

inline copy(from, to) { to.used = from.used; to.revoked = from.revoked; to.enrolled = from.enrolled }

inline admit(a) {
    promise(twice, !(admitted & BIT(a)));
    admitted = admitted | BIT(a); floor = floor | BIT(a)
}

#define IS_FREE(a) (!(primary.used & BIT(a)) && IS_NOT_REVOKED)
#ifdef MUTATE_unchecked
#define IS_NOT_REVOKED 1
#else
#define IS_NOT_REVOKED (!primary.revoked)
#endif

inline use(a) {
    promise(revoked, !revocationReturned);
    primary.used = primary.used | BIT(a); done[g] = done[g] | BIT(a)
}

#ifdef MUTATE_memoryDecides
#define ASK(a) used[g] = used[g] | BIT(a); kept[g] = kept[g] | BIT(a); admit(a)
#else
#define ASK(a) asked[g] = asked[g] | BIT(a)
#endif
#ifdef MUTATE_failedForwards
#define FORWARD(a) admit(a)
#else
#define FORWARD(a)
#endif
#define MAY_ASK(a) (!((used[g] | asked[g] | done[g]) & BIT(a)) && !knowsRevoked[g])

#ifdef MUTATE_twoStatements
#define CAN_STEP(a) (MAY_ASK(a) || ((asked[g] | compared[g] | done[g]) & BIT(a)))
#else
#define CAN_STEP(a) (MAY_ASK(a) || ((asked[g] | done[g]) & BIT(a)))
#endif

inline step(a) {
    if
    :: MAY_ASK(a) -> ASK(a)
#ifdef MUTATE_twoStatements
    :: (asked[g] & BIT(a)) && IS_FREE(a) -> asked[g] = asked[g] & ~BIT(a); compared[g] = compared[g] | BIT(a)
    :: compared[g] & BIT(a) -> compared[g] = compared[g] & ~BIT(a); use(a)
#else
    /* Decided, in one statement. */
    :: (asked[g] & BIT(a)) && IS_FREE(a) -> asked[g] = asked[g] & ~BIT(a); use(a)
#endif
    :: (asked[g] & BIT(a)) && !IS_FREE(a) ->
        asked[g] = asked[g] & ~BIT(a);
        if :: primary.revoked -> knowsRevoked[g] = 1 :: else fi
    /* Answered. */
    :: (done[g] & BIT(a)) && IS_SAFE(standby.used & BIT(a)) ->
        done[g] = done[g] & ~BIT(a); used[g] = used[g] | BIT(a); admit(a)
    /* Not answered: the connection is cut, or it takes too long. */
    :: (asked[g] | done[g]) & BIT(a) ->
        asked[g] = asked[g] & ~BIT(a); done[g] = done[g] & ~BIT(a);
        used[g] = used[g] | BIT(a); kept[g] = kept[g] | BIT(a);
        FORWARD(a)
    fi
}

proctype gateway(byte g) {
end: do
    :: atomic { CAN_STEP(0) -> step(0) }
    :: atomic { CAN_STEP(1) -> step(1) }
#if ASSERTIONS > 2
    :: atomic { CAN_STEP(2) -> step(2) }
#endif
    :: atomic { kept[g] ->
#ifdef MUTATE_overwrite
        primary.used = kept[g];
#else
        primary.used = primary.used | kept[g];
#endif
        promise(fell, (primary.used & floor) == floor);
        kept[g] = 0 }
    /* A start. */
    :: atomic { restarts < RESTARTS -> restarts++;
        used[g] = primary.used; knowsRevoked[g] = primary.revoked; kept[g] = 0; asked[g] = 0; done[g] = 0;
        promise(fell, (used[g] & floor) == floor) }
    od
}

init {
    byte i;
    atomic {
        if :: isSynchronous = 1 :: isSynchronous = 0 fi;
        do
        :: i < GATEWAYS -> run gateway(i); i++
        :: else -> break
        od;
        i = 0
    }
end: do
    :: atomic { !primary.enrolled -> enrols = 1; primary.enrolled = 1 }
    :: atomic { enrols && IS_SAFE(standby.enrolled) -> enrols = 0; answered201 = 1 }
    :: atomic { !primary.revoked -> isRevoking = 1; primary.revoked = 1 }
    :: atomic { isRevoking && IS_SAFE(standby.revoked) -> isRevoking = 0; revocationReturned = 1 }

    :: d_step { standby.used != primary.used || standby.revoked != primary.revoked ||
            standby.enrolled != primary.enrolled -> copy(primary, standby) }
    /* The standby takes over. All connections break: who waits for an answer gets none. */
    :: d_step { failovers < FAILOVERS -> failovers++;
        copy(standby, primary);
        if
        :: isSynchronous ->
            promise(lost, !answered201 || primary.enrolled);
            promise(revoked, !revocationReturned || primary.revoked);
            promise(fell, (primary.used & floor) == floor)
        :: else ->
            answered201 = answered201 && primary.enrolled; revocationReturned = revocationReturned && primary.revoked;
            floor = floor & primary.used; admitted = admitted & primary.used
        fi;
        enrols = 0; isRevoking = 0;
        do
        :: i < GATEWAYS ->
            used[i] = used[i] | asked[i] | done[i]; kept[i] = kept[i] | asked[i] | done[i];
            asked[i] = 0; done[i] = 0; i++
        :: else -> break
        od;
        i = 0 }
    od
}
