import Cryptography
import Encodings
import Expectations
import TestSupport
import Testing

@testable import AppAttest

@Suite struct AppleSampleTests {
    @Test func `both of Apple's samples are accepted, and with the challenge hashed refused`()
        throws
    {
        for sample in AppleSamples.all {
            let genuine = try AttestationCase(sample)
            let verified = try genuine.verified()
            expectEqual(verified.environment, .production)
            expectEqual(verified.counter, .zero)
            let hashed = SHA256.digest(of: Array(sample.clientData.utf8)).array
            expectEqual(genuine.refusal { $0.clientDataHash = hashed }, .nonceMismatch)
            let last = try moment(sample.leafNotAfter)
            expectEqual(
                genuine.refusal { $0.time = last.advanced(bySeconds: 1) },
                .certificateExpired
            )
        }
    }

    @Test func `the sample of 2026 has extensions although its flags do not say so`() throws {
        let verified = try AttestationCase(AppleSamples.year2026).verified()
        expectEqual(verified.flags, 0x40)
        expectEqual(verified.extensions.validationCategory, .operatingSystem)
        expectEqual(verified.extensions.bundleVersion, "1")
        try expectEqual(AttestationCase(AppleSamples.year2024).verified().extensions, .none)
    }

    @Test func `both receipts inside the samples verify`() throws {
        for sample in AppleSamples.all {
            let attestation = try AttestationCase(sample).verified()
            let receipt = try UnverifiedReceipt(bytes: attestation.receipt).verified(
                appIDs: [sample.appID],
                key: attestation.publicKey,
                roots: [AppleRoots.rootG3],
                freshness: .init(now: try moment(sample.verifyAt), secondsMax: 300)
            )
            expectEqual(receipt.fields.kind, .attest)
            expectEqual(receipt.fields.clientHash, Array(sample.clientData.utf8))
        }
    }

    @Test func `every truncation of a sample is malformed`() throws {
        for sample in AppleSamples.all {
            let object = try bytes(sample.attestation)
            for count in 0..<object.count {
                let reason = AttestationRefusal.reason {
                    _ = try UnverifiedAttestation(bytes: Array(object[..<count]))
                }
                expectEqual(reason, .malformed, "\(count) bytes")
            }
            expectEqual(
                AttestationRefusal.reason { _ = try UnverifiedAttestation(bytes: object + [0]) },
                .malformed
            )
        }
    }

    @Test func `a bit of a byte flipped is read or malformed, never a trap`() throws {
        for (place, sample) in AppleSamples.all.enumerated() {
            var object = try bytes(sample.attestation)
            for index in stride(from: place, to: object.count, by: 5) {
                let bit = UInt8(1) << UInt8(index % 8)
                object[index] ^= bit
                let reason = AttestationRefusal.reason {
                    _ = try UnverifiedAttestation(bytes: object)
                }
                #expect(reason == nil || reason == .malformed)
                object[index] ^= bit
            }
        }
    }

    @Test func `no byte outside the receipt can be changed`() throws {
        let genuine = try AttestationCase(AppleSamples.year2024)
        let receipt = try AttestationParts(genuine.object).receipt
        let start = try #require(genuine.object.firstRange(of: receipt))
        for index in genuine.object.indices where !start.contains(index) {
            let bit = UInt8(1) << UInt8(index % 8)
            #expect(genuine.refusal { $0.object[index] ^= bit } != nil, "byte \(index)")
        }
    }

    @Test func `the object has exactly its keys, in any order, in strict CBOR`() throws {
        let genuine = try AttestationCase(AppleSamples.year2024)
        guard case .map(let pairs) = try AttestationParts(genuine.object).value else {
            throw BrokenVector()
        }
        func reason(_ pairs: [CBORValue.Pair]) -> AttestationRefusal.Reason? {
            genuine.refusal { $0.object = CBORValue.map(pairs).encoded }
        }
        expectEqual(reason(pairs.reversed()), nil)
        expectEqual(reason(Array(pairs.dropFirst())), .malformed)
        expectEqual(reason(pairs + [.init(.text("more"), .null)]), .malformed)
        expectEqual(reason(pairs + [pairs[0]]), .malformed)
        expectEqual(reason([.init(.text("fmt"), .text("packed"))] + pairs.dropFirst()), .malformed)
        // The same map with an indefinite length.
        expectEqual(
            genuine.refusal {
                $0.object[0] = 0xBF; $0.object.append(0xFF)
            },
            .malformed
        )
    }
}
