import Dispatch
import Expectations
import Glibc
import Synchronization
import Testing

@testable import EventLoops

/// Sends back what it reads, and stops reading while it can't.
private final class Echo: Connection {
    override func inputReady() {
        while unsentBytes == 0 {
            switch read() {
            case .bytes(let bytes):
                if case .failed = write(bytes.span) { return close() }
            case .wouldBlock: return
            case .ended, .failed: return close()
            }
        }
    }
    override func outputDrained() { resumeReading() }
}

/// Sends a number of bytes and counts what comes back.
private final class Caller: Connection {
    var toSend = 0
    var received = 0
    var finished: ((Int) -> Void)?
    private let piece = [UInt8](repeating: 7, count: 50_000)

    override func connectEnded(_ error: SocketError?) {
        guard error == nil else { return finish() }
        outputDrained()
    }
    override func outputDrained() {
        while toSend > 0, unsentBytes == 0 {
            let count = min(toSend, piece.count)
            toSend -= count
            let piece = piece
            if case .failed = write(piece.span.extracting(0..<count)) { return finish() }
        }
        if toSend == 0, unsentBytes == 0 { shutDownOutput() }
    }
    override func inputReady() {
        while true {
            switch read() {
            case .bytes(let bytes): received += bytes.count
            case .wouldBlock: return
            case .ended, .failed: return finish()
            }
        }
    }
    override func deadlinePassed() { finish() }
    private func finish() {
        close()
        finished?(received)
        finished = nil
    }

    /// Connects, and sends so many bytes.
    @discardableResult
    static func call(
        _ address: SocketAddress,
        on loop: EventLoop,
        sending count: Int = 0,
        finished: @escaping (Int) -> Void
    ) throws -> Caller {
        let opened = try Connection.open(to: address)
        let caller = Caller(
            descriptor: opened.descriptor,
            peer: address,
            isConnecting: opened.isConnecting,
            on: loop
        )
        caller.toSend = count
        caller.finished = finished
        try loop.register(caller)
        return caller
    }
}

/// Says that there is something to read.
private final class Hearer: Connection {
    var heard: (() -> Void)?
    override func inputReady() { heard?() }
}

/// Goes on by itself, as a transfer does: each turn takes longer than the time between two polls.
private final class Transfer: Endpoint {
    var turned: ((Int) -> Void)?
    private var turns = 0

    override func ready(_ events: UInt32) {
        turns += 1
        let end = MonotonicClock.nanoseconds &+ 200_000
        while MonotonicClock.nanoseconds < end {}
        loop.inputCount = EventLoop.inputBytes
        turned?(turns)
        loop.resume(self)
    }
}

/// Says that there is something to read.
private final class Small: Endpoint {
    var heard: (() -> Void)?
    override func ready(_ events: UInt32) { heard?() }
}

@Suite struct EventLoopTests {
    /// All clients of a balancer are in one flow.
    @Test func `a small request waits for few turns of a transfer of its flow`() async throws {
        let loop = try EventLoop(number: 0)
        loop.start()
        let waited: Int = await onLoop(loop) { done in
            do {
                var (one, two): ([Int32], [Int32]) = ([0, 0], [0, 0])
                try #require(pipe(&one) == 0 && pipe(&two) == 0)
                let transfer = Transfer(descriptor: one[0], on: loop)
                let small = Small(descriptor: two[0], on: loop)
                let input = two[1]
                var turns = 0
                transfer.turned = {
                    turns = $0
                    if $0 == 10 { _ = Glibc.write(input, "x", 1) }
                }
                small.heard = {
                    let waited = turns - 10
                    for endpoint in [transfer, small] { _ = Glibc.close(endpoint.detach()) }
                    _ = (Glibc.close(one[1]), Glibc.close(input))
                    done(waited)
                }
                try loop.register(transfer)
                try loop.register(small)
                loop.resume(transfer)
            } catch {
                done(-1)
            }
        }
        loop.stop()
        #expect((0...2).contains(waited), "\(waited) turns")
    }

    /// Between two of its polls is a turn of the transfer, 0.2 ms at least.
    @Test func `other threads are woken in a long iteration, too`() async throws {
        let loop = try EventLoop(number: 0)
        loop.start()
        let (polls, calls): (Int, Int) = await onLoop(loop) { done in
            var ends: [Int32] = [0, 0]
            guard pipe(&ends) == 0 else { return done((-1, 0)) }
            let transfer = Transfer(descriptor: ends[0], on: loop)
            var (turns, calls) = (0, 0)
            transfer.turned = { turns = $0 }
            loop.iterationLasts = { calls += 1 }
            loop.iterationEnded = {
                defer { calls = 0 }
                guard loop.iteration.polls > 20 || turns > 100_000 else { return }
                (loop.iterationEnded, loop.iterationLasts) = (nil, nil)
                for end in [transfer.detach(), ends[1]] { _ = Glibc.close(end) }
                done((loop.iteration.polls, calls))
            }
            do { try loop.register(transfer) } catch { return done((-1, 0)) }
            loop.resume(transfer)
        }
        loop.stop()
        #expect(polls > 20, "no iteration was long")
        #expect(calls > 0)
    }

    @Test func `an event loop is busy while turns follow each other, and not while it waits`()
        async throws
    {
        let loop = try EventLoop(number: 0)
        let pauses = DispatchQueue(label: "portcullis.test.pauses")
        loop.start()
        let (turns, waits): (Int, Int) = await onLoop(loop) { done in
            var ends: [Int32] = [0, 0]
            guard pipe(&ends) == 0 else { return done((-1, -1)) }
            let transfer = Transfer(descriptor: ends[0], on: loop)
            var (turns, waits) = (0, 0)
            transfer.turned = { turns = $0 }
            let end = {
                loop.iterationEnded = nil
                _ = Glibc.close(ends[1])
                done((turns, waits))
            }
            let waited = {
                waits += 1
                guard loop.isBusy, waits < 10_000 else { return end() }
                pauses.asyncAfter(deadline: .now() + .milliseconds(5)) {
                    loop.perform {}
                }
            }
            loop.iterationEnded = {
                guard loop.isBusy || turns > 100_000 else { return }
                _ = Glibc.close(transfer.detach())
                loop.iterationEnded = waited
                loop.perform {}
            }
            do { try loop.register(transfer) } catch { return end() }
            loop.resume(transfer)
        }
        loop.stop()
        #expect((1...100_000).contains(turns), "\(turns) turns")
        #expect((1..<10_000).contains(waits), "\(waits) waits")
    }

    private func onLoop<Value: Sendable>(
        _ loop: EventLoop,
        _ body: @escaping @Sendable (@escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        await withCheckedContinuation { continuation in
            loop.perform { body { continuation.resume(returning: $0) } }
        }
    }

    /// The next event loop's set has the number of the one before: the lowest that is free.
    @Test func `an event loop that never ran takes no call from the next one`() throws {
        for _ in 0..<1_000 {
            _ = try EventLoop(number: 0)
            let next = try EventLoop(number: 1)
            next.start()
            let called = DispatchSemaphore(value: 0)
            next.perform { called.signal() }
            try #require(called.wait(timeout: .now() + .seconds(120)) == .success)
            next.stop()
        }
    }

    @Test(arguments: [1, 1000, 5_000_000])
    func `bytes come back in full, over a slow and a fast side`(count: Int) async throws {
        let loop = try EventLoop(number: 0)
        loop.start()
        let received: Int = await onLoop(loop) { done in
            do {
                let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
                let listener = Listener(descriptor: try Listener.open(address), on: loop)
                listener.accepted = { descriptor, peer in
                    let echo = Echo(
                        descriptor: descriptor,
                        peer: peer,
                        isConnecting: false,
                        on: loop
                    )
                    try? loop.register(echo)
                }
                try listener.start()
                let bound = Listener.boundAddress(listener.descriptor)
                try Caller.call(bound, on: loop, sending: count) { received in
                    listener.close()
                    done(received)
                }
            } catch {
                done(-1)
            }
        }
        expectEqual(received, count)
    }

    @Test func `a deadline passes where nothing comes`() async throws {
        let loop = try EventLoop(number: 1)
        loop.start()
        let received: Int = await onLoop(loop) { done in
            do {
                let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
                let listener = Listener(descriptor: try Listener.open(address), on: loop)
                let bound = Listener.boundAddress(listener.descriptor)
                let caller = try Caller.call(bound, on: loop, sending: 1) { received in
                    listener.close()
                    done(received)
                }
                caller.setDeadline(milliseconds: 120)
                caller.setDeadline(milliseconds: 60)
            } catch {
                done(-1)
            }
        }
        expectEqual(received, 0)
    }

    @Test func `an alarm rings at its moment, and the moment that was set last counts`()
        async throws
    {
        let loop = try EventLoop(number: 3)
        loop.start()
        let late: [Bool] = await onLoop(loop) { done in
            do {
                let alarm = try Alarm(on: loop)
                var late: [Bool] = []
                var moment = MonotonicClock.nanoseconds + 2_000_000
                alarm.rang = {
                    late.append(MonotonicClock.nanoseconds >= moment)
                    guard late.count < 3 else { return done(late) }
                    // The second moment lies in the past: it rings at once.
                    moment = MonotonicClock.nanoseconds + (late.count == 1 ? 0 : 1_000_000)
                    alarm.set(nanoseconds: late.count == 1 ? 1 : moment)
                }
                alarm.set(nanoseconds: .max / 2)
                alarm.set(nanoseconds: moment)
            } catch {
                done([])
            }
        }
        expectEqual(late, [true, true, true])
    }

    @Test func `what gets ready while a turn takes too long is served by the next`() async throws {
        let loop = try EventLoop(number: 4)
        loop.start()
        let rings: [String] = await onLoop(loop) { done in
            do {
                let (long, next) = (try Alarm(on: loop), try Alarm(on: loop))
                let limit = try Alarm(on: loop)
                var rings: [String] = []
                long.rang = {
                    rings.append("long")
                    next.set(nanoseconds: 1)
                    let end = MonotonicClock.nanoseconds + 20_000_000
                    while MonotonicClock.nanoseconds < end {}
                    limit.set(nanoseconds: end + 5_000_000_000)
                }
                next.rang = {
                    limit.close()
                    done(rings + ["next"])
                }
                limit.rang = { done(rings) }
                long.set(nanoseconds: 1)
            } catch {
                done(["\(error)"])
            }
        }
        expectEqual(rings, ["long", "next"])
    }

    @Test func `a look tells what came since, and who it came for is served all the same`()
        async throws
    {
        let loop = try EventLoop(number: 6)
        loop.start()
        let seen: [String] = await onLoop(loop) { done in
            do {
                var ends: [Int32] = [0, 0]
                try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
                let hearer = Hearer(
                    descriptor: ends[0],
                    peer: try #require(SocketAddress(unixPath: "/")),
                    isConnecting: false,
                    on: loop
                )
                try loop.register(hearer)
                let other = ends[1]
                let alarm = try Alarm(on: loop)
                var seen: [String] = []
                hearer.heard = {
                    hearer.close()
                    alarm.close()
                    done(seen + ["heard"])
                }
                alarm.rang = {
                    send(other, "x", 1, 0)
                    Glibc.close(other)
                    if !hearer.isReadable { seen.append("not known") }
                    loop.look()
                    if hearer.isReadable { seen.append("known") }
                }
                alarm.set(nanoseconds: 1)
            } catch {
                done(["\(error)"])
            }
        }
        expectEqual(seen, ["not known", "known", "heard"])
    }

    @Test func `work that a look has found is done, though nothing else happens`() async throws {
        let loop = try EventLoop(number: 7)
        loop.start()
        let doneIn = Mutex<UInt64?>(nil)
        let isInTime: Bool = await onLoop(loop) { done in
            do {
                let (alarm, limit) = (try Alarm(on: loop), try Alarm(on: loop))
                alarm.rang = {
                    loop.perform { doneIn.withLock { $0 = loop.iteration.beganAt } }
                    loop.look()
                    limit.set(nanoseconds: MonotonicClock.nanoseconds + 100_000_000)
                }
                limit.rang = {
                    let iteration = loop.iteration.beganAt
                    done(doneIn.withLock { $0.map { $0 != iteration } ?? false })
                }
                alarm.set(nanoseconds: 1)
            } catch {
                done(false)
            }
        }
        #expect(isInTime)
    }

    @Test func `work from other threads is done in its order, on the loop`() async throws {
        let loop = try EventLoop(number: 5)
        let seen = Mutex<[Int]>([])
        for number in 0..<500 { loop.perform { seen.withLock { $0.append(number) } } }
        loop.start()
        let half: Int = await onLoop(loop) { done in
            loop.preconditionOnQueue()
            done(seen.withLock { $0.count })
        }
        expectEqual(half, 500)
        // Each of these finds an event loop that waits, or one that is about to.
        for number in 500..<1000 {
            let _: Bool = await onLoop(loop) { done in
                seen.withLock { $0.append(number) }
                done(true)
            }
        }
        expectEqual(seen.withLock { $0 }, Array(0..<1000))
    }

    @Test func `a refused connect is told`() async throws {
        let loop = try EventLoop(number: 2)
        loop.start()
        let received: Int = await onLoop(loop) { done in
            do {
                let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
                let descriptor = try Listener.open(address)
                let bound = Listener.boundAddress(descriptor)
                let listener = Listener(descriptor: descriptor, on: loop)
                listener.close()
                try Caller.call(bound, on: loop) { done($0) }
            } catch {
                done(0)
            }
        }
        expectEqual(received, 0)
    }
}

@Suite struct SocketAddressTests {
    @Test func `addresses are read and refused`() {
        expectEqual(SocketAddress(ip: "127.0.0.1", port: 80)?.bytes, [127, 0, 0, 1])
        expectEqual(SocketAddress(ip: "::ffff:10.0.0.1", port: 80)?.bytes, [10, 0, 0, 1])
        expectEqual(SocketAddress(ip: "::1", port: 8080)?.port, 8080)
        #expect(SocketAddress(ip: "localhost", port: 80) == nil)
        #expect(SocketAddress(unixPath: "") == nil)
        #expect(SocketAddress(unixPath: String(repeating: "x", count: 108)) == nil)
        expectEqual(SocketAddress(unixPath: "/tmp/x")?.isUnix, true)
    }
}
