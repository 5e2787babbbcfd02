/*
 * One gateway on SQLite: counter and challenge with write-behind, a kill at each step, a start, and an older
 * copy of the store.
 *
 * One key. Its device signs assertions 0, 1, 2 ... with rising counters; anybody may send each of them at any
 * time, as often as they like. An assertion has no challenge, a challenge, or a challenge at a rule that writes
 * behind. The counters of a key are a set of bits: the bit of each counter that was used. Rules are windows: what
 * a strict rule admits, a window admits too.
 *
 *   step        code
 *   start       SQLiteKeyJournal.init: ChangeWatch.init, StoreAge.problem, CounterAnchors.take, Generation.advance,
 *               GenerationFile.init
 *   load        KeyTable.init: KeyJournal.load, KeyJournal.follow; ChallengeIssuer.init draws the epoch
 *   request     Judge.consume, Judge.survivesCrash; KeyTable.consume; KeyEntry.refusal, KeyEntry.use
 *   enrol       Enrolment.enrol; KeyTable.enrol
 *   take        PendingChanges.take, PendingChanges.merged
 *   commit      SQLiteKeyJournal.commit; CounterLog.append
 *   fail        PendingChanges.failed: what was not written is kept, those who wait are answered 503
 *   report      Committer.end, Committer.report; Exchange.committed; Enrolment.stored
 *   settle      SQLiteKeyJournal.settle: GenerationFile.raise
 *   refresh     ChangeWatch.lookNow; KeyTable.refresh
 *   revoke      KeyAdministration.revoke, KeyAdministration.prepareGeneration; ChangeWatch.answer
 *   copy, put   StoreBackup, or cp; an operator, by hand; `serve --accept-older-store`
 *
 * Left out: rules with `on_error: forward`, which forward what a failing store can't decide; `keys restore`.
 *
 *   variant              promise that it breaks
 *   MUTATE_forwardFirst  twice    a request goes on before its counter is on disk
 *   MUTATE_epoch         twice    challenges of an earlier start count
 *   MUTATE_anchor        twice    the keys of an older copy need no challenge
 *   MUTATE_unsigned      twice    a challenge counts that the assertion does not sign
 *   MUTATE_answerFirst   lost     201 before the commit
 *   MUTATE_bindLate      revoked  the keys are read before commands can call
 *   MUTATE_overwrite     fell     a batch that is tried again replaces newer counters
 *   MUTATE_lateRelease   revoked  a request that was judged before waits for the disk, and goes on
 *   FIND_generationLag   lost     the code: a copy from between a commit and the raise of its file looks newest
 */
#include "promises.h"
#ifndef ASSERTIONS
#define ASSERTIONS 2
#endif
#ifndef STARTS
#define STARTS 3
#endif

mtype = { off, opened, filed, loaded, serving, idle, taken, committed, reported, none, told };

/* The device, and what was promised to whom. */
byte made, withChallenge, behind, admitted;
byte epochOf[ASSERTIONS];
bit answered201, revocationReturned;
byte floor;  /* Counters that the store had. */

/* The disk. */
byte dUsed, dGeneration, fileGeneration;
bit dKey, dRevoked;
bit dHeld = 1;

/* A copy of the database. */
byte cUsed, cGeneration;
bit cKey, cRevoked, cHeld, hasCopy, wasPut;

/* The memory of the gateway: all of it goes with a kill. */
mtype phase = off;
byte starts, epoch, mUsed, spent, waiting;
bit mKey, mRevoked, mHeld;
mtype writer = idle;
byte pending, kept, batch, batchKept, batchWaiting, ownGeneration;
bit enrols, batchEnrols;

mtype command = none;

inline forget() {
    d_step {
        phase = off; mUsed = 0; spent = 0; waiting = 0; mKey = 0; mRevoked = 0; mHeld = 0;
        writer = idle; pending = 0; kept = 0; batch = 0; batchKept = 0; batchWaiting = 0; ownGeneration = 0;
        enrols = 0; batchEnrols = 0
    }
}

inline admit(a) {
    promise(twice, !(admitted & BIT(a)));
    admitted = admitted | BIT(a)
}

/* Whether an assertion's challenge is good: one of this start. */
#ifdef MUTATE_epoch
#define IS_GOOD(a) (!(spent & BIT(a)))
#else
#define IS_GOOD(a) (epochOf[a] == epoch && !(spent & BIT(a)))
#endif
/* An attacker may put a fresh challenge beside an assertion that does not sign it. */
#ifdef MUTATE_unsigned
#define HAS_CHALLENGE(a) 1
#define CHALLENGE_IS_GOOD(a) (!(withChallenge & BIT(a)) || IS_GOOD(a))
#else
#define HAS_CHALLENGE(a) (withChallenge & BIT(a))
#define CHALLENGE_IS_GOOD(a) (!HAS_CHALLENGE(a) || IS_GOOD(a))
#endif

inline request(a) {
    d_step {
        a < made && mKey && !mRevoked && CHALLENGE_IS_GOOD(a) &&
            (mHeld -> !(mUsed & BIT(a)) : (mUsed < BIT(a) && HAS_CHALLENGE(a))) ->
        promise(revoked, !revocationReturned);
        if
        :: withChallenge & BIT(a) -> spent = spent | BIT(a)
        :: else
        fi;
        mUsed = mUsed | BIT(a);
        /* Any counter below may have been used after the copy. */
        if
        :: !mHeld -> mUsed = mUsed | BELOW(a); mHeld = 1
        :: else
        fi;
        pending = mUsed;
        if
        :: behind & BIT(a) -> admit(a)
        :: else ->
            waiting = waiting | BIT(a);
#ifdef MUTATE_forwardFirst
            admit(a)
#endif
        fi
    }
}

active proctype gateway() {
    byte a;
end: do
    /* A start, which may be told to accept an older copy. */
    :: atomic { phase == off && starts < STARTS && dGeneration >= fileGeneration ->
        dGeneration++; starts++; phase = opened }
    :: d_step { phase == off && starts < STARTS && dGeneration < fileGeneration ->
#ifndef MUTATE_anchor
        dHeld = 0;
#endif
        /* The promises hold from the copy's moment on. */
        answered201 = answered201 && dKey; revocationReturned = revocationReturned && dRevoked; floor = dUsed;
        dGeneration++; starts++; phase = opened }
    :: atomic { phase == opened -> fileGeneration = dGeneration; phase = filed }
    :: d_step { phase == filed ->
        mUsed = dUsed; mKey = dKey; mRevoked = dRevoked; mHeld = dHeld; epoch = starts; phase = loaded;
        promise(fell, (mUsed & floor) == floor);
        promise(lost, !answered201 || mKey) }
    :: atomic { phase == loaded -> phase = serving }

    /* Requests. */
    :: atomic { phase == serving -> select (a : 0 .. ASSERTIONS - 1); if :: request(a) :: else fi; a = 0 }
    :: atomic { phase == serving && made < ASSERTIONS ->
        epochOf[made] = epoch;
        if
        :: true
        :: withChallenge = withChallenge | BIT(made)
        :: withChallenge = withChallenge | BIT(made); behind = behind | BIT(made)
        fi;
        made++ }
    :: atomic { phase == serving && !mKey && !enrols && !batchEnrols ->
        enrols = 1;
#ifdef MUTATE_answerFirst
        answered201 = 1
#endif
    }
    :: atomic { phase == serving && mRevoked != dRevoked -> mRevoked = dRevoked }

    /* The writer. */
    :: atomic { phase == serving && writer == idle && (pending || kept || enrols) ->
        /* What has failed is taken again when a retry is due. */
        if :: batchKept = kept; kept = 0 :: pending || enrols fi;
        batch = pending; batchWaiting = waiting; batchEnrols = enrols;
        pending = 0; waiting = 0; enrols = 0; writer = taken }
    :: d_step { writer == taken ->
#ifdef MUTATE_overwrite
        if
        :: batchKept -> dUsed = batchKept
        :: else -> dUsed = dUsed | batch
        fi;
#else
        dUsed = dUsed | batch | batchKept;
#endif
        /* A use that is later than the copy. */
        if :: batch | batchKept -> dHeld = 1 :: else fi;
        if :: batchEnrols -> dKey = 1 :: else fi;
        promise(fell, (dUsed & floor) == floor);
        floor = dUsed;
        dGeneration++; ownGeneration = dGeneration; writer = committed }
    :: d_step { writer == taken ->
        kept = kept | batchKept | batch;
        batch = 0; batchKept = 0; batchWaiting = 0; batchEnrols = 0; writer = idle }
    :: d_step { writer == committed ->
        a = 0;
        do
        :: a < ASSERTIONS && (batchWaiting & BIT(a)) ->
#ifndef MUTATE_lateRelease
            if :: mRevoked -> goto next :: else fi;
#endif
            promise(revoked, !revocationReturned); admit(a);
next:       a++
        :: a < ASSERTIONS && !(batchWaiting & BIT(a)) -> a++
        :: a == ASSERTIONS -> break
        od;
        if
        :: batchEnrols -> mKey = 1; answered201 = 1; mUsed = mUsed | dUsed
        :: else
        fi;
        a = 0; batch = 0; batchKept = 0; batchWaiting = 0; batchEnrols = 0; writer = reported }
    :: atomic { writer == reported ->
        if
        :: fileGeneration < ownGeneration -> fileGeneration = ownGeneration
        :: else
        fi;
        writer = idle }

    /* SIGKILL. */
    :: phase != off -> forget()
    od
}

/* `keys revoke` returns when the gateway has read the change, or where there is none. */
#ifdef MUTATE_bindLate
#define IS_HEARING (phase == serving)
#else
#define IS_HEARING (phase != off)
#endif
/* The file of the generation is written after its transaction. A copy from in between looks newest. */
#ifdef FIND_generationLag
#define IS_NOTICED 1
#else
#define IS_NOTICED (cGeneration < fileGeneration || cGeneration == dGeneration)
#endif
active proctype operator() {
end: do
    :: d_step { command == none && dKey && !dRevoked && dGeneration >= fileGeneration ->
        dRevoked = 1; dGeneration++; command = committed }
    :: d_step { command == committed && !IS_HEARING -> command = told;
        if :: fileGeneration < dGeneration -> fileGeneration = dGeneration :: else fi;
        revocationReturned = 1 }
    :: d_step { command == committed && phase == serving -> command = told;
        mRevoked = dRevoked;
        if :: fileGeneration < dGeneration -> fileGeneration = dGeneration :: else fi;
        revocationReturned = 1 }
    :: d_step { !hasCopy && dGeneration > 0 ->
        hasCopy = 1; cUsed = dUsed; cGeneration = dGeneration; cKey = dKey; cRevoked = dRevoked; cHeld = dHeld }
    :: d_step { phase == off && hasCopy && !wasPut && command != committed && IS_NOTICED -> wasPut = 1;
        dUsed = cUsed; dGeneration = cGeneration; dKey = cKey; dRevoked = cRevoked; dHeld = cHeld }
    od
}
