import EventLoops

// Requests that wait for a place at a server whose connections are limited.
extension OriginPool {
    /// The requests of this event loop that wait.
    struct Waits {
        var dials: [UInt64: OriginDial] = [:]
        /// Fires when the first of them has waited too long.
        var alarm: Alarm?
        /// Milliseconds of ``EventLoop/now``; `.max` for none.
        var rings = UInt64.max
        /// Only requests from before the pool's end may still come.
        var isRetired = false
        /// The pool in which the waiting requests continue. Calls that were on their way are
        /// forwarded to it.
        var successor: OriginPool?
    }

    /// Makes other event loops able to call this one, where a server has a limit.
    func listen() {
        guard servers.contains(where: \.isLimited) else { return }
        let bound = LoopBound(self, on: loop)
        settings.state.call(loop.number) { [loop] call in
            loop.perform { bound.value.heard(call) }
        }
    }

    /// The pool serves no new requests. Waiting requests continue in the next pool. Connections in
    /// use are closed when their request ends: no request would take them from here.
    func retire(to next: OriginPool?) {
        for server in servers {
            if next?.servers.contains(where: { $0 === server }) != true { server.leave() }
        }
        waits.isRetired = true
        let dials = waits.dials
        waits.dials = [:]
        waits.alarm?.rang = nil
        waits.alarm?.close()
        waits.alarm = nil
        // The next pool already listens, if one of its servers has a limit.
        let goesOn = next?.servers.contains(where: \.isLimited) == true
        if !goesOn, servers.contains(where: \.isLimited) {
            settings.state.call(loop.number, at: nil)
        }
        if goesOn { waits.successor = next }
        for (id, dial) in dials {
            if let next, goesOn {
                next.admit(dial, as: id)
            } else {
                settings.state.leave(id, flow: dial.flow)
                dial.wake(in: next ?? self)
            }
        }
    }

    // MARK: Waiting

    /// Makes a dial wait for a place at one of these servers. A request from before a reload waits
    /// with the others, for those of its servers that are still the origin's.
    func wait(_ dial: OriginDial, for full: [OriginServer]) -> ConnectionSlots.Entry {
        if let successor = waits.successor {
            let known = full.compactMap { successor.server($0.state.number) }
            return known.isEmpty ? .full : successor.wait(dial, for: known)
        }
        guard !waits.isRetired else { return .full }
        let entry = settings.state.wait(
            for: full.map(\.state),
            refusing: dial.tried.map(\.state),
            flow: dial.flow,
            loop: loop.number
        )
        if case .waits(let id, _, _) = entry { admit(dial, as: id) }
        return entry
    }

    private func admit(_ dial: OriginDial, as id: UInt64) {
        waits.dials[id] = dial
        dial.waits(as: id, in: self)
        ring(at: dial.waitsUntil)
    }

    /// A dial no longer waits.
    func leave(_ id: UInt64, flow: Int) {
        guard waits.dials.removeValue(forKey: id) != nil else { return }
        settings.state.leave(id, flow: flow)
    }

    private func ring(at end: UInt64) {
        guard end < waits.rings else { return }
        if waits.alarm == nil {
            // If there is no descriptor for it, the waits end when a place is free.
            waits.alarm = try? Alarm(on: loop)
            waits.alarm?.rang = { [unowned self] in timePassed() }
        }
        waits.rings = end
        let left = end > loop.now ? end - loop.now : 0
        let nanoseconds = left.multipliedReportingOverflow(by: 1_000_000)
        guard !nanoseconds.overflow else { return }
        waits.alarm?.set(nanoseconds: MonotonicClock.nanoseconds &+ nanoseconds.partialValue)
    }

    private func timePassed() {
        waits.rings = .max
        let now = loop.now
        for (id, dial) in waits.dials where dial.waitsUntil <= now &+ 1 {
            leave(id, flow: dial.flow)
            dial.waitedTooLong()
        }
        let next = waits.dials.values.map(\.waitsUntil).min()
        if let next { ring(at: next) }
    }

    // MARK: Calls

    private func heard(_ call: PlaceCall) {
        if let successor = waits.successor { return successor.heard(call) }
        switch call {
        case .granted(let id, let number):
            let server = server(number)
            guard let dial = waits.dials.removeValue(forKey: id) else {
                // The request has gone. The next waiter gets the place.
                if let server { return server.freed(on: loop) }
                return settings.state.giveBack(number)
            }
            guard let server, !server.state.isClosed else {
                settings.state.giveBack(number)
                return dial.wake(in: self)
            }
            dial.granted(server)
        case .given(let id, let number):
            let stream = server(number)?.takePromised(id)
            guard let dial = waits.dials.removeValue(forKey: id) else {
                stream?.closeInOrder()
                return
            }
            if let stream, stream.isFitNow() { return dial.given(stream) }
            stream?.close()
            dial.wake(in: self)
        case .again(let id): waits.dials.removeValue(forKey: id)?.wake(in: self)
        case .displaced(let id): waits.dials.removeValue(forKey: id)?.displaced()
        case .yield(let number): server(number)?.yield()
        }
    }

    private func server(_ number: Int) -> OriginServer? {
        servers.first { $0.state.number == number }
    }
}
