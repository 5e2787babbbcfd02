/*
 * Orders about one rule over a partition: gateways, one database, operators and guards. Each gateway reaches the
 * database or does not; an order is given to any of them.
 *
 * An order is `observe` (of an operator or a guard: it reduces refusals) or a share. Its stamp is when it was given; all
 * clocks agree. A state is what the rule does, with the stamp of the order that says so.
 *
 *   step        code
 *   poll        Rollouts.refresh, FleetOrdering.poll: FleetOrders.take, Pending.isReplaced, FleetOrdering.settle
 *   compare     Rollouts.compare, FleetOrders.doubt
 *   give        Rollouts.decide, FleetOrdering.give, FleetDatabase.set
 *   pend        Rollouts.pend, FleetOrders.pend: without the database
 *   fall        Guards.fall: an `observe` like an operator's
 *   look        RolloutCommand shows the version that the order must be after
 *   start       RolloutFile.kept, Rollouts.Start
 *   lose        a failover that lost the last transactions
 *
 * Left out: `--all observe`, ramps, gateways that come from a store of their own, a disk that is full.
 *
 *   variant            promise that it breaks
 *   MUTATE_noVersion   undone   an order that may refuse is taken whatever has been ordered since it was decided on
 *   MUTATE_anyChange   undone   any change that is found ends an order that waits for the database
 *   MUTATE_forgets     undone   a start forgets the orders that the database does not have
 *   FIND_lostVersions  undone   the code: a lagging gateway writes its state back under the number of a lost order
 */
#include "promises.h"
#ifndef ORDERS
#define ORDERS 4
#endif
#define GATEWAYS 2
#define VERSIONS 16
#define OBSERVE 0
#define SHARE 1

/* The database: version, state, stamp, and the ticket of the writer; the stamps of changes, 0 for what was written back. */
byte dVersion = 1, dValue = SHARE, dStamp, dTicket, tickets;
byte changes[VERSIONS];
byte oVersion, oValue, oStamp, oTicket;
bit hasOld, wasLost;

/* Gateways: what the fleet has agreed on as far as they know, and an `observe` that the database does not have. */
byte version[GATEWAYS], value[GATEWAYS], stamp[GATEWAYS], ticket[GATEWAYS], pending[GATEWAYS];
byte now, i;

/* An operator who has looked, and has not given the order yet. */
bit hasLooked;
byte lookedAt, knows;

byte before, beforeStamp;
#define IN_FORCE(g) (pending[g] -> OBSERVE : value[g])
#define STAMP(g) (pending[g] -> (stamp[g] > pending[g] && value[g] == OBSERVE -> stamp[g] : pending[g]) : stamp[g])

inline remember(g) { before = IN_FORCE(g); beforeStamp = STAMP(g) }
/* No older share in the place of an `observe`. */
inline compareWith(g) {
    promise(undone, !(before == OBSERVE && IN_FORCE(g) == SHARE && STAMP(g) < beforeStamp));
    before = 0; beforeStamp = 0
}

inline write(g, what, at, noted) {
    dVersion = (dVersion > version[g] -> dVersion : version[g]) + 1;
    tickets++; dTicket = tickets; dValue = what; dStamp = at; changes[dVersion] = noted;
    version[g] = dVersion; value[g] = what; stamp[g] = at; ticket[g] = dTicket
}

#ifdef MUTATE_anyChange
#define IS_REPLACED(g) 1
#else
#define IS_REPLACED(g) (changes[i] > pending[g])
#endif
inline poll(g) {
    if
    :: dVersion > version[g] ->
        i = version[g] + 1;
        do
        :: i <= dVersion -> if :: pending[g] && IS_REPLACED(g) -> pending[g] = 0 :: else fi; i++
        :: else -> break
        od;
        i = 0;
        version[g] = dVersion; value[g] = dValue; stamp[g] = dStamp; ticket[g] = dTicket
    :: dVersion == version[g] && dTicket != ticket[g] -> version[g] = version[g] - 1
    :: dVersion < version[g] -> write(g, value[g], stamp[g], 0)
    :: else
    fi;
    if
    :: pending[g] && dVersion == version[g] && dTicket == ticket[g] ->
        write(g, OBSERVE, pending[g], pending[g]); pending[g] = 0
    :: else
    fi
}

proctype gateway(byte g) {
end: do
    :: d_step { dVersion < VERSIONS - 3 && (dVersion != version[g] || dTicket != ticket[g] || pending[g]) ->
        remember(g); poll(g); compareWith(g) }
    /* `observe`, with the database and without it. */
    :: d_step { now < ORDERS && dVersion < VERSIONS - 3 ->
        remember(g); poll(g);
        if
        :: dVersion == version[g] && dTicket == ticket[g] -> now++; write(g, OBSERVE, now, now)
        :: else
        fi;
        compareWith(g) }
    :: d_step { now < ORDERS -> now++; pending[g] = now }
    /* A share, which somebody has decided on when they looked. */
    :: d_step { !hasLooked && now < ORDERS -> hasLooked = 1; knows = version[g]; lookedAt = now }
    :: d_step { hasLooked && now < ORDERS && dVersion < VERSIONS - 3 ->
        remember(g); poll(g);
        if
#ifdef MUTATE_noVersion
        :: dVersion == version[g] && dTicket == ticket[g] ->
#else
        :: dVersion == version[g] && dTicket == ticket[g] && dVersion == knows ->
#endif
            promise(undone, dValue == SHARE || dStamp <= lookedAt || wasLost);
            now++; write(g, SHARE, now, now)
        :: else
        fi;
        hasLooked = 0; knows = 0; lookedAt = 0;
        compareWith(g) }
#ifdef MUTATE_forgets
    :: d_step { pending[g] -> remember(g); pending[g] = 0; compareWith(g) }
#endif
    od
}

init {
    atomic { version[0] = 1; version[1] = 1; value[0] = SHARE; value[1] = SHARE; run gateway(0); run gateway(1) }
#ifdef FIND_lostVersions
end: do
    :: d_step { !hasOld -> hasOld = 1; oVersion = dVersion; oValue = dValue; oStamp = dStamp; oTicket = dTicket }
    :: d_step { hasOld && !wasLost -> wasLost = 1;
        dVersion = oVersion; dValue = oValue; dStamp = oStamp; dTicket = oTicket }
    od
#endif
}
