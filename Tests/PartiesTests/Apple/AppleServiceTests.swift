import Expectations
import Testing

@testable import Parties

struct AppleServiceTests {
    @Test func `the calls of a family go to the paths that Apple names`() {
        // Apple, "Assessing fraud risk"; "Accessing and modifying per-device data".
        let receipts = AppleService.allCases.filter { $0.family == .receipts }.map(\.path)
        expectEqual(receipts, ["/v1/attestationData"])
        let bits = AppleService.allCases.filter { $0.family == .deviceCheck }.map(\.path)
        expectEqual(
            bits,
            ["/v1/query_two_bits", "/v1/update_two_bits", "/v1/validate_device_token"]
        )
    }
}
