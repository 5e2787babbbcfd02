import ConfigurationReading
import Encodings
import Expectations
import Rules
import Testing

@testable import Gateway

/// What two processes say to each other: nothing of it is believed unchecked.
@Suite struct HandoverMessageTests {
    private static let messages: [HandoverMessage] = [
        .plan(store: "", sockets: []),
        .plan(
            store: "/var/lib/portcullis.db",
            sockets: [
                HandoverMessage.Socket(address: "0.0.0.0:443", isLent: true, count: 1),
                HandoverMessage.Socket(address: "unix:/run/admin", isLent: false, count: 1_024),
            ]
        ),
        .sockets, .ready(version: "1.0.0+dev"), .alive, .failed("the store is of a later version"),
        .taken, .go,
        .state([], isLast: true), .state(Array(repeating: 7, count: 100), isLast: false),
        .question(.max, [1, 2, 3]), .answer(0, []),
    ]

    @Test(arguments: messages)
    func `a message is read as it was written, and as nothing else`(_ message: HandoverMessage)
        throws
    {
        let bytes = message.bytes
        #expect(bytes.count <= HandoverMessage.bytesMax)
        try expectEqual(HandoverMessage(bytes), message)
        #expect(throws: ByteReader.Fault.self) { try HandoverMessage(bytes + [0]) }
        for count in bytes.indices {
            #expect(throws: ByteReader.Fault.self) { try HandoverMessage(Array(bytes[..<count])) }
        }
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                guard let other = try? HandoverMessage(changed) else { continue }
                #expect(other != message)
                expectEqual(other.bytes, changed)
            }
        }
    }

    @Test func `a plan of another version is none`() {
        var bytes = HandoverMessage.plan(store: "x", sockets: []).bytes
        expectEqual(bytes[1], HandoverMessage.version)
        for version in UInt8.min...UInt8.max where version != HandoverMessage.version {
            bytes[1] = version
            #expect(throws: ByteReader.Fault.self) { try HandoverMessage(bytes) }
        }
    }

    @Test func `a plan of more than there can be is none`() {
        func plan(_ sockets: Int, _ loops: Int) -> [UInt8] {
            let socket = HandoverMessage.Socket(address: "a", isLent: false, count: loops)
            let all = Array(repeating: socket, count: sockets)
            return HandoverMessage.plan(store: "", sockets: all).bytes
        }
        #expect(throws: Never.self) { try HandoverMessage(plan(1_024, 1_024)) }
        for (sockets, loops) in [(1_025, 1), (1, 0), (1, 1_025)] {
            #expect(throws: ByteReader.Fault.self) { try HandoverMessage(plan(sockets, loops)) }
        }
        let piece = HandoverMessage.pieceMax
        let longest = HandoverMessage.state(Array(repeating: 0, count: piece), isLast: true)
        #expect(throws: Never.self) { try HandoverMessage(longest.bytes) }
        let longer = HandoverMessage.state(Array(repeating: 0, count: piece + 1), isLast: true)
        #expect(throws: ByteReader.Fault.self) { try HandoverMessage(longer.bytes) }
    }

    @Test func `a state is read as it was written, and cut or longer it is none`() throws {
        let state = HandoverState(
            challenges: [1],
            sessions: [],
            tokens: [2, 3],
            tickets: [4],
            orders: [5],
            drained: ["10.0.0.5:8080", ""]
        )
        try expectEqual(HandoverState(state.bytes), state)
        #expect(throws: ByteReader.Fault.self) { try HandoverState(state.bytes + [0]) }
        for count in state.bytes.indices {
            #expect(throws: ByteReader.Fault.self) {
                try HandoverState(Array(state.bytes[..<count]))
            }
        }
    }
}
