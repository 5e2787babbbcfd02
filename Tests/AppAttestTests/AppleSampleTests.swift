import Cryptography
import Encodings
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
            #expect(verified.environment == .production)
            #expect(verified.counter == .zero)
            let hashed = SHA256.digest(of: Array(sample.clientData.utf8)).array
            #expect(genuine.refusal { $0.clientDataHash = hashed } == .nonceMismatch)
            let last = try moment(sample.leafNotAfter)
            #expect(
                genuine.refusal { $0.time = last.advanced(bySeconds: 1) } == .certificateExpired
            )
        }
    }

    @Test func `the sample of 2026 has extensions although its flags do not say so`() throws {
        let verified = try AttestationCase(AppleSamples.year2026).verified()
        #expect(verified.flags == 0x40)
        #expect(verified.extensions.validationCategory == .operatingSystem)
        #expect(verified.extensions.bundleVersion == "1")
        #expect(try AttestationCase(AppleSamples.year2024).verified().extensions == .none)
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
            #expect(receipt.fields.kind == .attest)
            #expect(receipt.fields.clientHash == Array(sample.clientData.utf8))
        }
    }

    @Test func `every truncation of a sample is malformed`() throws {
        for sample in AppleSamples.all {
            let object = try bytes(sample.attestation)
            for count in 0..<object.count {
                let reason = AttestationRefusal.reason {
                    _ = try UnverifiedAttestation(bytes: Array(object[..<count]))
                }
                #expect(reason == .malformed, "\(count) bytes")
            }
            #expect(
                AttestationRefusal.reason { _ = try UnverifiedAttestation(bytes: object + [0]) }
                    == .malformed
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
        #expect(reason(pairs.reversed()) == nil)
        #expect(reason(Array(pairs.dropFirst())) == .malformed)
        #expect(reason(pairs + [.init(.text("more"), .null)]) == .malformed)
        #expect(reason(pairs + [pairs[0]]) == .malformed)
        #expect(reason([.init(.text("fmt"), .text("packed"))] + pairs.dropFirst()) == .malformed)
        // The same map with an indefinite length.
        #expect(
            genuine.refusal {
                $0.object[0] = 0xBF; $0.object.append(0xFF)
            } == .malformed
        )
    }
}
