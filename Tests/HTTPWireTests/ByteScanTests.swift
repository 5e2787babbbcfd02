import Expectations
import Testing

@testable import HTTPWire

struct ByteScanTests {
    /// Bytes beside the one that is counted, zero, and those with the top bit.
    @Test func `a byte is counted as often as it occurs, wherever it stands`() {
        let neighbours: [UInt8] = [0x0A, 0x0B, 0x09, 0x00, 0x8A, 0xFF, 0x80, 0x7F, 0x0A, 0x01]
        for length in 0...40 {
            for start in 0..<neighbours.count {
                let bytes = (0..<length).map { neighbours[($0 + start) % neighbours.count] }
                let expected = bytes.count { $0 == 0x0A }
                expectEqual(ByteScan.count(of: 0x0A, in: bytes.span), expected)
            }
        }
    }
}
