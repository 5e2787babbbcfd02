import Foundation
import Glibc
import LoopbackKit

/// The cable between one gateway and the database, from Unix socket to Unix socket. A test cuts it.
///
/// `@unchecked Sendable`: what changes is touched under `condition`; the listener is set once.
final class DatabaseCable: FleetCable, @unchecked Sendable {
    private let far: String
    private let listener: Int32
    private let condition = NSCondition()
    private var standing = CableStanding.whole
    private var isEnded = false
    private var wires: [ObjectIdentifier: Wire] = [:]

    /// - folder: where the gateway connects; it is made.
    init(_ folder: String, to database: DatabaseServer) throws {
        let name = "/.s.PGSQL.5432"
        far = database.folder + name
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        listener = try LoopbackKit.listening(path: folder + name)
        Thread.detachNewThread { [self] in acceptAll() }
    }

    func turn(_ standing: CableStanding) {
        condition.withLock {
            self.standing = standing
            if case .cut = standing { for wire in wires.values { wire.cut() } }
            condition.broadcast()
        }
    }

    func end() {
        condition.withLock { isEnded = true }
        turn(.cut)
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private func acceptAll() {
        defer { Glibc.close(listener) }
        while Wire.isReady(listener, for: POLLIN, within: -1) {
            let descriptor = accept(listener, nil, nil)
            guard descriptor >= 0 else { return }
            let near = Wire(descriptor: descriptor)
            // What came while the cable was silent gets through when it is whole again.
            guard let far = try? Wire(path: far), hold(near, far) else {
                near.close()
                continue
            }
            Thread.detachNewThread { [self] in pump(near, far) }
            Thread.detachNewThread { [self] in pump(far, near) }
        }
    }

    /// Takes a pair into its care, unless nothing may pass.
    private func hold(_ near: Wire, _ far: Wire) -> Bool {
        condition.withLock {
            if case .cut = standing { return false }
            for wire in [near, far] { wires[ObjectIdentifier(wire)] = wire }
            return true
        }
    }

    private func pump(_ from: Wire, _ to: Wire) {
        while Wire.isReady(from.descriptor, for: POLLIN, within: -1) {
            do {
                try from.receive()
                guard isPassable() else { break }
                try to.send(from.inbox)
                from.inbox = []
            } catch {
                break
            }
        }
        for wire in [from, to] {
            wire.cut()
            _ = condition.withLock { wires.removeValue(forKey: ObjectIdentifier(wire)) }
        }
    }

    /// Waits while the cable is silent.
    private func isPassable() -> Bool {
        condition.withLock {
            while case .silent = standing { condition.wait() }
            if case .cut = standing { return false }
            return !isEnded
        }
    }
}
