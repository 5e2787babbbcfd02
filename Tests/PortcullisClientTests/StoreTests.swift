import Foundation
import Testing

@testable import PortcullisClient

/// What every store does; the Keychain's can only be tried on a device.
@Suite struct StoreTests {
    private static func stores() -> [any EnrolmentStore] {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-store-\(UUID().uuidString)")
        return [MemoryEnrolmentStore(), FileEnrolmentStore(file: file)]
    }

    @Test func `a store keeps what replaces what it holds, and nothing else`() async throws {
        for store in Self.stores() {
            let (a, b) = (Data("a".utf8), Data("b".utf8))
            #expect(try await store.read() == nil)
            #expect(try await store.replace(b, with: a) == false)
            #expect(try await store.replace(nil, with: a))
            #expect(try await store.replace(nil, with: b) == false)
            #expect(try await store.replace(b, with: b) == false)
            #expect(try await store.read() == a)
            #expect(try await store.replace(a, with: b))
            #expect(try await store.read() == b)
            #expect(try await store.replace(b, with: nil))
            #expect(try await store.replace(nil, with: nil))
            #expect(try await store.read() == nil)
        }
    }

    @Test func `of many that replace the same record one wins`() async throws {
        for store in Self.stores() {
            let wins = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<50 {
                    group.addTask { try await store.replace(nil, with: Data([UInt8(number)])) }
                }
                return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(wins == 1)
        }
    }

    @Test func `a file is its owner's alone, and what another process wrote is seen`()
        async throws
    {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-store-\(UUID().uuidString)")
        let (one, other) = (FileEnrolmentStore(file: file), FileEnrolmentStore(file: file))
        #expect(try await one.replace(nil, with: Data("a".utf8)))
        #expect(try await other.read() == Data("a".utf8))
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `a lease keeps others out until it ends or its holder is gone`() throws {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let (one, other) = (LeaseHolder(), LeaseHolder())
        let lease = one.lease(until: now.addingTimeInterval(30))
        #expect(other.isKept(out: lease, now: now, longest: 30))
        #expect(!one.isKept(out: lease, now: now, longest: 30))
        #expect(!other.isKept(out: lease, now: now.addingTimeInterval(30), longest: 30))
        #expect(!other.isKept(out: lease, now: now.addingTimeInterval(-60), longest: 30))
        #expect(!other.isKept(out: nil, now: now, longest: 30))
        one.retire()
        #expect(!other.isKept(out: lease, now: now, longest: 30))
        // A process that has ended: this one's child.
        let child = try Process.run(URL(filePath: "/bin/true"), arguments: [])
        child.waitUntilExit()
        let dead = EnrolmentRecord.Lease(
            holder: "x",
            process: child.processIdentifier,
            until: now.timeIntervalSince1970 + 20
        )
        #expect(!other.isKept(out: dead, now: now, longest: 30))
        let parent = EnrolmentRecord.Lease(
            holder: "x",
            process: getppid(),
            until: now.timeIntervalSince1970 + 20
        )
        #expect(other.isKept(out: parent, now: now, longest: 30))
    }
}
