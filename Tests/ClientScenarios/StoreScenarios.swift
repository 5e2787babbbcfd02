import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// The app's store fails in the middle, and the app forgets its key in the middle.
    @Suite struct Stores {
        private func stand(_ store: ScriptedStore) throws -> ClientStand {
            let stand = try ClientStand()
            stand.store = store
            return stand
        }

        // MARK: A store that fails

        @Test func `a store that fails before Apple is asked costs no attestation`() async throws {
            let store = ScriptedStore()
            let stand = try stand(store)
            defer { stand.end() }
            let request = try stand.request("GET", "/orders/1")
            let app = try stand.app()
            store.always(.fail)
            let early = try await app.send(request)
            expectEqual(early.statusCode, 401)
            expectEqual(early.proof, .none(.storeUnavailable))
            expectEqual(stand.cost, Cost(keys: 0, attestations: 0))
            // A key was made, and the store can't note it.
            store.always(.work)
            stand.service.next(.generateKey, .runAfter { store.always(.fail) })
            try await expectEqual(app.send(request).proof, .none(.storeUnavailable))
            expectEqual(stand.cost, Cost(keys: 1, attestations: 0))
            store.always(.work)
            let answers = try await app.sendAtOnce(20, request)
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            expectEqual(stand.cost.attestations, 1)
        }

        @Test func `a store that fails once Apple has answered loses neither key nor request`()
            async throws
        {
            let store = ScriptedStore()
            let stand = try stand(store)
            defer { stand.end() }
            stand.service.next(.attestKey, .runAfter { store.always(.fail) })
            let app = try stand.app()
            let answers = try await app.sendAtOnce(20, stand.request("GET", "/orders/1"))
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
            expectEqual(stand.verdicts, Array(repeating: "pass", count: 20))
        }

        @Test(arguments: [ScriptedStore.Step.keepButFail, .keepButDeny, .deny])
        func `a store that says wrong things about what it kept costs one attestation`(
            step: ScriptedStore.Step
        ) async throws {
            // Each of the first calls is the one about which it is wrong.
            for place in 0..<6 {
                let store = ScriptedStore()
                let stand = try stand(store)
                defer { stand.end() }
                store.next(Array(repeating: .work, count: place) + [step])
                let app = try stand.app()
                let request = try stand.request("GET", "/orders/1")
                // It may have to be sent again: a store that fails is not asked twice.
                if try await app.send(request).statusCode != 200 {
                    try await expectEqual(app.send(request).statusCode, 200, "\(step) at \(place)")
                }
                expectEqual(stand.cost.attestations, 1, "\(step) at \(place)")
            }
        }

        // MARK: Forgetting

        @Test(arguments: ["attestKey", ClientStand.challenges, ClientStand.keys])
        func `a user who signs out during an enrolment gets a key of the next user's own`(
            place: String
        ) async throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let latch = Latch()
            if place == "attestKey" {
                stand.service.next(.attestKey, .wait(latch))
            } else {
                stand.transport.next(place, .wait(latch))
            }
            let app = try stand.app { $0.context = Data("first".utf8) }
            let request = try stand.request("GET", "/orders/1")
            async let first = app.send(request)
            await latch.awaitArrivals(1)
            try await app.reset(context: Data("second".utf8))
            latch.open()
            _ = try await first
            let answers = try await app.sendAtOnce(20, request)
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            let keys = stand.service.attested.map(\.keyID)
            #expect(answers.allSatisfy { $0.proof == .assertion(keyID: keys.last ?? "") })
            let second = Data("second".utf8).base64EncodedString()
            #expect(stand.told("Context").suffix(20).allSatisfy { $0 == second })
            // The first key may have been attested by then.
            expectEqual(stand.service.counts.keysMade, 2)
            expectEqual(keys.count, place == ClientStand.challenges ? 1 : 2)
        }

        @Test func `a store that always says that another was faster makes no key, and ends`()
            async throws
        {
            let store = ScriptedStore()
            let stand = try stand(store)
            defer { stand.end() }
            store.always(.deny)
            let app = try stand.app { $0.limits.enrolmentWait = .milliseconds(500) }
            let answer = try await app.send(stand.request("GET", "/orders/1"))
            expectEqual(answer.statusCode, 401)
            await app.close()
            expectEqual(stand.cost, Cost(keys: 0, attestations: 0))
            // It is not asked again and again without a pause.
            #expect(store.replacements < 100)
        }
    }
}
