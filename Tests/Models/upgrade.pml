/*
 * The upgrade: an old process hands over to a new one, either dies at any step, messages are late or lost. When both
 * are gone, or the store is free, the supervisor starts a third.
 *
 * Three requests, each sent to whichever process listens, as often as anybody likes: 0 has a challenge and is
 * written behind, 1 waits for the disk, 2 has a number of a session. Their challenge and session are of the old
 * process. A second key is enrolled meanwhile, and the first one is revoked.
 *
 *   step        code
 *   ahead       StoreOpening.readAhead, KeysAhead.init; KeyTable.beginTrail
 *   ready       Predecessor.takeState; Upgrade.expect
 *   park        Upgrade.handOver: LoopBarrier
 *   lend        KeyTable.stopWriting: Committer.flush, SQLiteKeyJournal.lend
 *   state       TransferredParts.state: ChallengeIssuer.state, SessionTable.state; Upgrade.send
 *   open        StoreOpening.table; SQLiteKeyReader.load; KeyJournal.follow
 *   taken, go   Predecessor.takeTurn; Upgrade.handOver: Decider.handOver
 *   giveUp      SuccessorProcess.kill waits for its end; Upgrade.takeBack: SQLiteKeyJournal.takeBack, KeyTable.goOn
 *   ask         Decider.consume, Decider.use, Decider.enrol; SuccessorLine.ask
 *   answer      SuccessorService.answer, SuccessorService.commitEnded
 *   revoke      KeyAdministration.revoke; ChangeWatch.answer, ChangeWatch.pause
 *   leave       KeyTable.leaveStore: SQLiteKeyJournal.leave
 *   start       StoreLock.init: one process at a time
 *
 * A message is a bit that its reader takes, or takes late, or never.
 *
 *   variant            promise that it breaks
 *   MUTATE_noBarrier   twice    event loops go on while the state is written
 *   MUTATE_noKill      twice    the old process gives up and goes on beside the new one
 *   MUTATE_lateServes  twice    a new process that has waited too long for GO serves
 *   MUTATE_decidesOn   twice    the old process decides again when its line is cut
 *   MUTATE_noLock      twice    a third process starts beside the other two
 *   MUTATE_noTrail     lost     what is enrolled after the keys were read ahead is not read again
 *   MUTATE_noRefresh   revoked  the old process goes on without reading what the new one has confirmed
 *   MUTATE_fold        fell     the log of counters is merged while another process reads ahead
 */
#include "promises.h"
#ifndef UPGRADES
#define UPGRADES 1
#endif
#define OLD 0
#define NEW 1
#define THIRD 2
#define IS_AWAITED(r) (r == 1)
#define IS_OF_SESSION(r) (r == 2)

/* `idle` is a process that was not started, `handed` one that asks its successor. */
mtype = { idle, serving, ahead, ready, parked, lent, sent, opened, waitsForGo, handed, dead };
mtype phase[3];
byte mUsed[3], spent[3], pending[3], waiting[3];
bit mRevoked[3], enrols[3], mEnrolled[3];
byte dUsed, floor;
bit dRevoked, dEnrolled;
/* What the new process has read ahead, and what has left the log of counters since. */
byte aUsed, folded;
bit aEnrolled, aRevoked;
/* Messages. */
bit isReady, isState, isTaken, isGo;
byte sentSpent;
byte asked, asking, answered;
bit enrolAsked, enrolAnswered;
bit hasLeft;
byte upgrades;
byte admitted;
bit answered201, revocationReturned, isRevoking;
#define IS_ALIVE(p) (phase[p] != idle && phase[p] != dead)
#ifdef MUTATE_noBarrier
#define DECIDES(p) (phase[p] == serving || p == OLD && (phase[p] == parked || phase[p] == lent || phase[p] == sent))
#else
#define DECIDES(p) (phase[p] == serving)
#endif
inline admit(r) {
    promise(twice, !(admitted & BIT(r)));
    admitted = admitted | BIT(r)
}
/* A challenge and a session are those of the old process, which the new one has taken over. */
#define IS_FREE(p, r) (!mRevoked[p] && (IS_AWAITED(r) || p != THIRD && !(spent[p] & BIT(r))) && \
    (IS_OF_SESSION(r) || !(mUsed[p] & BIT(r))))
#define IS_ANY_FREE(p) (IS_FREE(p, 0) || IS_FREE(p, 1) || IS_FREE(p, 2))
inline use(p, r) {
    promise(revoked, !revocationReturned);
    promise(fell, (mUsed[p] & floor) == floor);
    spent[p] = spent[p] | (IS_AWAITED(r) -> 0 : BIT(r));
    mUsed[p] = mUsed[p] | (IS_OF_SESSION(r) -> 0 : BIT(r));
    pending[p] = pending[p] | (IS_OF_SESSION(r) -> 0 : BIT(r))
}
inline reset(p) {
    phase[p] = dead; mUsed[p] = 0; spent[p] = 0; pending[p] = 0; waiting[p] = 0;
    mRevoked[p] = 0; enrols[p] = 0; mEnrolled[p] = 0
}

/* The end of the process `p`: its sockets close. */
inline kill(p) {
    d_step {
        reset(p);
        if
        :: p == OLD -> asked = 0; enrolAsked = 0; answered = 0; enrolAnswered = 0
        :: p == NEW -> isReady = 0; isTaken = 0; isState = 0; isGo = 0; asking = 0
        :: else
        fi
    }
}

/* One transaction with all that waits; its requests go on. */
inline commit(p) {
    d_step {
        dUsed = dUsed | pending[p]; floor = dUsed;
        if :: waiting[p] & BIT(1) -> admit(1) :: else fi;
        if :: p == NEW && (asking & BIT(1)) -> answered = answered | BIT(1) :: else fi;
        if
        :: enrols[p] -> dEnrolled = 1; mEnrolled[p] = 1;
            if :: p == NEW && enrolAsked -> enrolAnswered = 1 :: else -> answered201 = 1 fi
        :: else
        fi;
        pending[p] = 0; waiting[p] = 0; enrols[p] = 0;
        if :: p == NEW -> asking = 0; enrolAsked = 0 :: else fi
    }
}

inline returns(p) { mRevoked[p] = 1; isRevoking = 0; revocationReturned = 1 }

proctype server(byte p) {
end: do
    :: atomic { DECIDES(p) && IS_ANY_FREE(p) ->
        if
        :: IS_FREE(p, 0) -> use(p, 0); admit(0)
        :: IS_FREE(p, 1) -> use(p, 1); waiting[p] = waiting[p] | BIT(1)
        :: IS_FREE(p, 2) -> use(p, 2); admit(2)
        fi }
    :: atomic { DECIDES(p) && !mEnrolled[p] && !enrols[p] -> enrols[p] = 1 }
    :: (phase[p] == serving || phase[p] == parked) && (pending[p] || enrols[p]) -> commit(p)
    :: atomic { phase[p] == serving && mRevoked[p] != dRevoked -> mRevoked[p] = dRevoked }
    :: IS_ALIVE(p) -> kill(p)
    od
}

active proctype old() {
    atomic {
    phase[NEW] = idle; phase[THIRD] = idle; phase[OLD] = serving;
    run server(OLD); run server(NEW); run server(THIRD) }
end: do
    :: atomic { phase[OLD] == serving && phase[NEW] == idle && upgrades < UPGRADES -> phase[NEW] = ahead; upgrades++ }
    :: atomic { phase[OLD] == serving && isReady -> isReady = 0; phase[OLD] = parked }
    :: atomic { phase[OLD] == parked && !pending[OLD] && !enrols[OLD] -> phase[OLD] = lent }
    :: atomic { phase[OLD] == lent -> sentSpent = spent[OLD]; isState = phase[NEW] != dead; phase[OLD] = sent }
    :: atomic { phase[OLD] == sent && isTaken && phase[NEW] != dead -> isTaken = 0; isGo = 1; phase[OLD] = handed }
    /* The new process is late, hangs, fails, or has ended. */
    :: d_step { (phase[OLD] == serving || phase[OLD] == parked || phase[OLD] == lent || phase[OLD] == sent) &&
            phase[NEW] != idle ->
#ifdef MUTATE_noKill
        isTaken = 0;
        if :: phase[NEW] == waitsForGo -> isGo = 1 :: else fi;
#else
        reset(NEW); isReady = 0; isTaken = 0; isState = 0; isGo = 0;
        phase[NEW] = idle;
#endif
#ifndef MUTATE_noRefresh
        mRevoked[OLD] = dRevoked; mEnrolled[OLD] = mEnrolled[OLD] || dEnrolled;
#endif
        folded = 0; phase[OLD] = serving }
    /* The log of counters is merged into the rows of keys. */
#ifdef MUTATE_fold
    :: atomic { phase[NEW] == ahead || phase[NEW] == ready -> folded = dUsed }
#endif
    /* After the hand-over: it asks about what it had not decided. */
    :: atomic { phase[OLD] == handed && phase[NEW] == serving && !asked && IS_ANY_FREE(NEW) ->
        if
        :: IS_FREE(NEW, 0) -> asked = BIT(0)
        :: IS_FREE(NEW, 1) -> asked = BIT(1)
        :: IS_FREE(NEW, 2) -> asked = BIT(2)
        fi }
    :: atomic { phase[OLD] == handed && phase[NEW] == serving && !enrolAsked && !enrolAnswered -> enrolAsked = 1 }
    :: atomic { phase[OLD] == handed && answered ->
        if
        :: answered & BIT(0) -> admit(0); answered = answered & ~BIT(0)
        :: answered & BIT(1) -> admit(1); answered = answered & ~BIT(1)
        :: answered & BIT(2) -> admit(2); answered = answered & ~BIT(2)
        fi }
    :: atomic { phase[OLD] == handed && enrolAnswered -> enrolAnswered = 0; answered201 = 1 }
    /* Its line is cut: all that asked are answered 503. */
    :: atomic { phase[OLD] == handed && phase[NEW] == dead && (asked || enrolAsked) ->
#ifdef MUTATE_decidesOn
        if :: asked & BIT(2) -> admit(2) :: else fi;
#endif
        asked = 0; enrolAsked = 0 }
    :: atomic { phase[OLD] == handed && !hasLeft -> hasLeft = 1 }
    od
}

active proctype new() {
    byte r;
end: do
    :: atomic { phase[NEW] == ahead -> aUsed = dUsed; aEnrolled = dEnrolled; aRevoked = dRevoked; folded = 0;
        isReady = 1; phase[NEW] = ready }
    :: atomic { phase[NEW] == ready && isState -> isState = 0; spent[NEW] = sentSpent; phase[NEW] = opened }
    :: d_step { phase[NEW] == opened ->
        mUsed[NEW] = aUsed | (dUsed & ~folded);
#ifdef MUTATE_noTrail
        mEnrolled[NEW] = aEnrolled;
#else
        mEnrolled[NEW] = dEnrolled;
#endif
        mRevoked[NEW] = dRevoked;
        promise(lost, !answered201 || mEnrolled[NEW]);
        isTaken = 1; phase[NEW] = waitsForGo }
    :: atomic { phase[NEW] == waitsForGo && isGo -> isGo = 0; phase[NEW] = serving }
    /* The old process has ended. */
    :: atomic { (phase[NEW] == ahead || phase[NEW] == ready) && phase[OLD] == dead -> phase[NEW] = dead; isState = 0 }
    :: atomic { phase[NEW] == waitsForGo && phase[OLD] == dead -> phase[NEW] = serving }
    /* It has waited too long. */
    :: atomic { phase[NEW] == waitsForGo ->
#ifdef MUTATE_lateServes
        phase[NEW] = serving
#else
        kill(NEW)
#endif
    }
    /* What the old process asks. */
    :: atomic { phase[NEW] == serving && asked ->
        if :: asked & BIT(0) -> r = 0 :: asked & BIT(1) -> r = 1 :: asked & BIT(2) -> r = 2 fi;
        asked = asked & ~BIT(r);
        if
        :: IS_FREE(NEW, r) -> use(NEW, r);
            if :: IS_AWAITED(r) -> asking = asking | BIT(r) :: else -> answered = answered | BIT(r) fi
        :: else
        fi;
        r = 0 }
    :: atomic { phase[NEW] == serving && enrolAsked && !enrols[NEW] -> enrols[NEW] = 1 }

    /* The supervisor. */
#ifdef MUTATE_noLock
    :: d_step { phase[THIRD] == idle && phase[OLD] == dead ->
#else
    :: d_step { phase[THIRD] == idle && (phase[OLD] == dead || hasLeft) &&
            (phase[NEW] == idle || phase[NEW] == dead) && !isState ->
#endif
        mUsed[THIRD] = dUsed; mRevoked[THIRD] = dRevoked; mEnrolled[THIRD] = dEnrolled;
        promise(lost, !answered201 || mEnrolled[THIRD]);
        promise(fell, (mUsed[THIRD] & floor) == floor);
        phase[THIRD] = serving }

    /* `keys revoke`: the process answers that watches the store. */
    :: atomic { !dRevoked -> dRevoked = 1; isRevoking = 1 }
    :: atomic { isRevoking && (phase[OLD] == serving || phase[OLD] == parked) -> returns(OLD) }
    :: atomic { isRevoking && (phase[NEW] == waitsForGo || phase[NEW] == serving) -> returns(NEW) }
    :: atomic { isRevoking && phase[THIRD] == serving -> returns(THIRD) }
    :: atomic { isRevoking && (phase[OLD] == dead || hasLeft) && !isState && phase[NEW] != opened &&
            phase[NEW] != waitsForGo && phase[NEW] != serving && phase[THIRD] != serving ->
        isRevoking = 0; revocationReturned = 1 }
    od
}
