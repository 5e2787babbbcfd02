import AppAttest
import Cryptography
import Expectations
import HTTPWire
import Rules
import Testing

@testable import Proxy

@Suite struct EnforcementTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let address = IPAddress.v4(0x0A00_0001)

    private func enforcement(_ mode: Mode, _ rollout: Rollout, signer: KeyID?) -> Enforcement {
        var demands = Rule.Demands(salt: "sample", mode: mode)
        demands.rollout = rollout
        let rule = Rule(
            id: "sample",
            index: 0,
            match: RouteMatch(),
            origin: mode == .deny ? nil : OriginIndex(0),
            demands: demands
        )
        return Enforcement(rule, signer: signer, address: Self.address, at: Self.now)
    }

    @Test(arguments: [
        (Mode.off, Enforcement.observed), (.observe, .observed), (.enforce, .enforced),
        (.deny, .enforced),
    ])
    func `the mode decides where the rollout is whole`(_ mode: Mode, _ wanted: Enforcement) {
        let whole = Rollout(.fixed(.whole), salt: "sample")
        expectEqual(enforcement(mode, whole, signer: nil), wanted)
    }

    @Test func `nobody is enforced where the rollout is nothing`() {
        let nothing = Rollout(.fixed(.none), salt: "sample")
        expectEqual(enforcement(.enforce, nothing, signer: nil), .observed)
        expectEqual(enforcement(.deny, nothing, signer: nil), .enforced)
    }

    @Test func `a key that has signed has a bucket, and without one the address has`() throws {
        let half = Rollout(.fixed(try #require(Share(percent: "50%"))), salt: "sample")
        let keys = (0..<64).map { KeyID(SHA256.digest(of: [UInt8($0)])) }
        let bySigner = Set(keys.map { enforcement(.enforce, half, signer: $0) })
        expectEqual(bySigner, [.observed, .enforced])
        let byAddress = Rollout(half.schedule, by: .address, salt: "sample")
        let wanted = enforcement(.enforce, half, signer: nil)
        for key in keys { expectEqual(enforcement(.enforce, byAddress, signer: key), wanted) }
    }
}
