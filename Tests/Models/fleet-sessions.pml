/*
 * A fleet's revocations: gateways that read changes from one PostgreSQL, that are cut off or stopped, a failover that
 * keeps the last changes and one that loses them.
 *
 * Two keys with sessions, whose requests come at any time. One number of a session of gateway 0 is sent to all, as often
 * as anybody likes. Gateways only read here, and none changes what another one does. So one stands for all.
 * Time is an age in halves of `revoked_within`, which passes whenever it may.
 *
 *   step        code
 *   begin       KeyTable.refresh: ReadMoment.now before the reading
 *   read        PostgreSQLKeyJournal.changes, LostRevisions.start
 *   take        LostRevisions.goesOn; KeyTable.take; ReadMoment.note
 *   cut off     KeyTable.refresh: the table is not current, sessions are answered 503
 *   session     KeyCheck.find, KeyTable.findUnasked, ReadMoment.counts; SessionEvidence.use, Session.use
 *   start       PostgreSQLKeyJournal.load; SessionTable.init draws another secret
 *   revoke      PostgreSQLKeyArchive.revoke, PostgreSQLKeyArchive.nextRevision; PostgreSQLKeyArchive.awaitGateways
 *   replicate, fail over   PostgreSQL, with `synchronous_standby_names` or without
 *
 * Assumed: a server that was replaced answers nobody (fencing); rules with `on_error: refuse`; clocks run equally fast;
 * the last changes that a failover may lose are few and recent (LostRevisions.countMax, ageMax). A revocation that it
 * has lost has to be given again: deploy/docs/fleet.md says so.
 *
 *   variant                promise that it breaks
 *   MUTATE_sharedSessions  twice    gateways take sessions of each other
 *   MUTATE_noAge           revoked  a session is admitted however long ago the changes were read
 *   MUTATE_notesEnd        revoked  the changes count as known from the end of a reading
 *   MUTATE_noWait          revoked  the command returns when the database has answered
 *   MUTATE_noRereading     revoked  a new connection goes on from the last revision
 *   FIND_oldPrimary        revoked  without the first assumption: a server that was replaced still answers readers
 */
#include "promises.h"
#ifdef MUTATE_sharedSessions
#define GATEWAYS 2
#define HOLDS(g) 1
#else
#define HOLDS(g) (g == 0 && isOpen)
#endif
#ifndef GATEWAYS
#define GATEWAYS 1
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#define OLD_AGE 2

mtype = { idle, begun, answered, none, asks, committed };

/* The database and its standby: revoked keys, the revision, and the revision of each key's row. */
typedef Server { byte revoked, revision, row[2] }
Server primary, standby;
#ifdef FIND_oldPrimary
Server replaced;
#endif
bit isSynchronous;
byte failovers, restarts;
/* Whether the session is open, and the gateways that have used its number. */
bit isOpen = 1;
byte numbers;

/* Gateways. */
byte knowsRevoked[GATEWAYS], revision[GATEWAYS], age[GATEWAYS];
bit isCurrent[GATEWAYS], isBroken[GATEWAYS], isTold[GATEWAYS];
mtype reader[GATEWAYS];
byte readerAge[GATEWAYS];
byte seenRevoked[GATEWAYS], seenRevision[GATEWAYS];  /* What a reading has brought. */

/* What was promised. */
byte returned;
bit isAdmitted;
mtype command = none;
byte key, commandAge;

inline copy(from, to) {
    to.revoked = from.revoked; to.revision = from.revision; to.row[0] = from.row[0]; to.row[1] = from.row[1]
}

#ifdef MUTATE_noAge
#define IS_KNOWN(g) isCurrent[g]
#else
#define IS_KNOWN(g) (isCurrent[g] && age[g] < OLD_AGE)
#endif
#define MAY_USE(k) (IS_KNOWN(g) && !(knowsRevoked[g] & BIT(k)))

/* Reads the rows after the last revision; after a new connection, or where there are fewer than before, all. */
#ifdef MUTATE_noRereading
#define START(server) (server.revision < revision[g] -> 0 : revision[g])
#else
#define START(server) (isBroken[g] || server.revision < revision[g] -> 0 : revision[g])
#endif
inline read(server) {
    seenRevoked[g] = (server.row[0] > START(server) -> server.revoked & 1 : knowsRevoked[g] & 1) |
        (server.row[1] > START(server) -> server.revoked & 2 : knowsRevoked[g] & 2);
    seenRevision[g] = server.revision; isBroken[g] = 0; reader[g] = answered
}

#ifdef MUTATE_notesEnd
#define NOTED 0
#else
#define NOTED readerAge[g]
#endif
inline rest() { reader[g] = idle; readerAge[g] = 0; seenRevoked[g] = 0; seenRevision[g] = 0 }
/* The table is not current: how old its knowledge is does not matter. */
inline stop() { isCurrent[g] = 0; age[g] = OLD_AGE }

proctype gateway(byte g) {
end: do
    :: atomic { MAY_USE(0) && HOLDS(g) && !(numbers & BIT(g)) ->
        promise(twice, !isAdmitted);
        numbers = numbers | BIT(g); isAdmitted = 1 }
    :: atomic { MAY_USE(0) && returned & BIT(0) -> promise(revoked, 0) }
    :: atomic { MAY_USE(1) && returned & BIT(1) -> promise(revoked, 0) }
    :: atomic { reader[g] == idle -> reader[g] = begun; readerAge[g] = 0 }
    :: d_step { reader[g] == begun -> read(primary) }
#ifdef FIND_oldPrimary
    :: d_step { reader[g] == begun && failovers -> read(replaced) }
#endif
    :: d_step { reader[g] == answered ->
        if
        /* Changes are lost: told first, and taken by the next reading. */
        :: seenRevision[g] < revision[g] && !isTold[g] -> isTold[g] = 1; isBroken[g] = 1; stop()
        :: else ->
            knowsRevoked[g] = seenRevoked[g]; revision[g] = seenRevision[g]; isTold[g] = 0;
            isCurrent[g] = 1; age[g] = NOTED
        fi;
        rest() }
    /* Cut off. What was to be read again still is. */
    :: d_step { reader[g] == begun -> rest(); stop() }
    :: d_step { reader[g] == answered -> rest(); isBroken[g] = 1; stop() }
    :: d_step { restarts < RESTARTS -> restarts++;
        knowsRevoked[g] = primary.revoked; revision[g] = primary.revision;
        age[g] = 0; isCurrent[g] = 1; isBroken[g] = 0; isTold[g] = 0;
        numbers = numbers & ~BIT(g); isOpen = isOpen && g != 0;
        rest() }
    od
}

inline older(what) { if :: what < OLD_AGE -> what++ :: else fi }

init {
    byte i;
    atomic {
        if :: isSynchronous = 1 :: isSynchronous = 0 fi;
        do
        :: i < GATEWAYS -> isCurrent[i] = 1; reader[i] = idle; run gateway(i); i++
        :: else -> break
        od;
        i = 0
    }
end: do
    /* Time passes. */
    :: d_step { true ->
        do
        :: i < GATEWAYS -> older(age[i]); if :: reader[i] != idle -> older(readerAge[i]) :: else fi; i++
        :: else -> break
        od;
        i = 0;
        if :: command == committed -> older(commandAge) :: else fi }

    :: atomic { command == none && primary.revoked != 3 ->
        if
        :: !(primary.revoked & 1) -> key = 0
        :: !(primary.revoked & 2) -> key = 1
        fi;
        primary.revision++; primary.row[key] = primary.revision; primary.revoked = primary.revoked | BIT(key);
        command = asks }
    :: atomic { command == asks && (!isSynchronous || standby.revision == primary.revision) -> command = committed }
#ifdef MUTATE_noWait
    :: atomic { command == committed ->
#else
    :: atomic { command == committed && commandAge == OLD_AGE ->
#endif
        returned = returned | BIT(key); command = none; key = 0; commandAge = 0 }

    :: d_step { copy(primary, standby) }
    /* The standby takes over: all connections break. */
    :: d_step { failovers < FAILOVERS -> failovers++;
#ifdef FIND_oldPrimary
        copy(primary, replaced);
#endif
        copy(standby, primary);
        promise(revoked, !isSynchronous || !(returned & ~primary.revoked));
        returned = returned & primary.revoked;
        /* The command fails, or what it has done is lost. */
        if
        :: command == asks || command == committed && !(primary.revoked & BIT(key)) ->
            command = none; key = 0; commandAge = 0
        :: else
        fi;
        do
        :: i < GATEWAYS -> isBroken[i] = 1; i++
        :: else -> break
        od;
        i = 0 }
    od
}
