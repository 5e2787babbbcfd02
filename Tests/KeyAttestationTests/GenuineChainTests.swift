import Encodings
import Expectations
import KeyAttestation
import Signatures
import TestSupport
import Testing

/// The chains of `../shared/vectors/android`; where they are absent, `SharedVectorFiles` says so.
@Suite struct GenuineChainTests {
    private static let all = SharedVectors.androidChains
    private static let enrolling = all.filter(\.mayEnrol)

    @Test(arguments: all)
    func `a genuine chain has the verdict that is expected`(_ vector: AndroidVector) throws {
        try expectEqual(GenuineChain(vector).reason()?.rawValue, vector.refusal)
    }

    @Test(arguments: enrolling)
    func `a chain is judged by its time, and a factory's lives on`(
        _ vector: AndroidVector
    ) throws {
        let chain = try GenuineChain(vector)
        let first = try #require(UnixTime(iso8601: vector.validFrom))
        expectEqual(chain.reason { $0.time = first }, nil)
        expectEqual(chain.reason { $0.time = first.advanced(bySeconds: -1) }, .notYetValid)
        if let last = try vector.validUntil.map({ try #require(UnixTime(iso8601: $0)) }) {
            expectEqual(chain.reason { $0.time = last }, nil)
            expectEqual(chain.reason { $0.time = last.advanced(bySeconds: 1) }, .expired)
        } else {
            let late = try #require(UnixTime(iso8601: "2060-01-01T00:00:00Z"))
            expectEqual(chain.reason { $0.time = late }, nil)
        }
    }

    @Test(arguments: enrolling)
    func `a chain is refused with anything else expected`(_ vector: AndroidVector) throws {
        let chain = try GenuineChain(vector)
        expectEqual(chain.reason { $0.challenge.append(0) }, .challenge)
        expectEqual(chain.reason { $0.challenge[0] ^= 1 }, .challenge)
        expectEqual(chain.reason { $0.challenge = [] }, .challenge)
        expectEqual(chain.reason { $0.package += "x" }, .app)
        expectEqual(chain.reason { $0.signers = [[UInt8](repeating: 0, count: 32)] }, .signer)
        expectEqual(chain.reason { $0.signers = [] }, .signer)
        let other = vector.expected.root == "rsa" ? GoogleRoots.ec2026 : GoogleRoots.rsa
        expectEqual(chain.reason { $0.roots = [other] }, .rootUnknown)
        expectEqual(chain.reason { $0.roots = [] }, .rootUnknown)
    }

    @Test(arguments: enrolling)
    func `the root may be left out, and any serial below it be revoked`(
        _ vector: AndroidVector
    ) throws {
        let chain = try GenuineChain(vector)
        #expect(vector.rootIncluded)
        expectEqual(chain.reason { _ = $0.certificates.removeLast() }, nil)
        let verified = try chain.verified()
        expectEqual(verified.serials.map(\.description), vector.expected.serialsHex.dropLast())
        for serial in verified.serials {
            let json = #"{"entries": {"00\#(serial)": {"status": "SUSPENDED"}}}"#
            let list = try StatusList(json: Array(json.utf8))
            expectEqual(chain.reason { $0.statusList = list }, .revoked)
            expectEqual(list.revoked(among: verified.serials), serial)
        }
    }

    @Test(arguments: enrolling)
    func `no certificate can be missing, doubled, moved or another phone's`(
        _ vector: AndroidVector
    ) throws {
        let chain = try GenuineChain(vector)
        let places = chain.certificates.indices
        for place in places {
            // The root need not be there.
            if place < places.count - 1 {
                #expect(chain.reason { _ = $0.certificates.remove(at: place) } != nil)
            }
            #expect(
                chain.reason { $0.certificates.insert($0.certificates[place], at: place) } != nil
            )
            for other in places where other != place {
                #expect(chain.reason { $0.certificates.swapAt(place, other) } != nil)
            }
        }
        let number = try #require(Self.enrolling.firstIndex { $0.id == vector.id })
        for distance in [1, 2, 3, 5, 8, 13, 21, 34] {
            let other = try GenuineChain(Self.enrolling[(number + distance) % Self.enrolling.count])
            for place in 0...1 where other.certificates[place] != chain.certificates[place] {
                var mixed = chain
                mixed.certificates[place] = other.certificates[place]
                // Phones of one batch have all certificates but the leaf in common.
                guard mixed.certificates != other.certificates else { continue }
                #expect(mixed.reason() != nil)
            }
        }
    }

    @Test(arguments: enrolling)
    func `no byte can be changed, cut off or added`(_ vector: AndroidVector) throws {
        let chain = try GenuineChain(vector)
        var random = SeededGenerator(seed: 30)
        for place in chain.certificates.indices {
            let count = chain.certificates[place].count
            let first = Int.random(in: 0..<151, using: &random)
            for offset in stride(from: first, to: count, by: 151) {
                let change = UInt8.random(in: 1...255, using: &random)
                let isRefused = chain.reason { $0.certificates[place][offset] ^= change } != nil
                #expect(isRefused, "certificate \(place), byte \(offset) changed by \(change)")
                expectEqual(
                    chain.reason { $0.certificates[place].removeSubrange(offset...) },
                    .malformed
                )
            }
            expectEqual(chain.reason { $0.certificates[place].append(0) }, .malformed)
        }
    }

    @Test(arguments: all.filter { $0.signature != nil })
    func `the attested key signs, and verifies nothing else`(_ vector: AndroidVector) throws {
        let chain = try GenuineChain(vector)
        let der = try #require(chain.certificates.first)
        let key = try #require(try X509Certificate(der: der).p256PublicKey)
        let signature = try #require(vector.signature)
        let message = try #require(Base64.decode(signature.messageB64))
        let bytes = try #require(Base64.decode(signature.signatureB64))
        func isValid(_ signature: [UInt8], _ message: [UInt8]) -> Bool {
            key.isValidSignature(signature.span, message: message.span)
        }
        #expect(isValid(bytes, message))
        #expect(!isValid(bytes, message + [0]))
        for place in bytes.indices {
            var other = bytes
            other[place] ^= 1
            #expect(!isValid(other, message))
        }
    }

    @Test(arguments: StatusCase.all)
    func `a status list does to a chain what is expected`(_ status: StatusCase) throws {
        let vector = try #require(Self.all.first { $0.id == status.chain })
        var chain = try GenuineChain(vector)
        guard let list = try? StatusList(json: status.json()) else {
            expectEqual(status.expect, "not-accept")
            return
        }
        chain.statusList = list
        switch status.expect {
        case "accept": expectEqual(chain.reason(), nil)
        case "refuse", "not-accept": expectEqual(chain.reason(), .revoked)
        default: expectEqual(status.expect, "either")
        }
    }
}
