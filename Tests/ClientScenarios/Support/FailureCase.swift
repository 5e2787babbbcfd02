import ClientKit
import Foundation
import PortcullisClient

/// Something that fails on the way to a proven request, and what it is to cost.
struct FailureCase: Sendable {
    /// What fails, as the guide's table says it.
    let name: String
    /// Makes it fail.
    let script: @Sendable (ClientStand) throws -> Void
    /// What happens once a request was proven; then a second one is sent.
    var later: (@Sendable (ClientStand) throws -> Void)?

    private init(
        _ name: String,
        _ script: @escaping @Sendable (ClientStand) throws -> Void = { _ in }
    ) {
        (self.name, self.script) = (name, script)
    }

    private init(
        _ name: String,
        script: @escaping @Sendable (ClientStand) throws -> Void,
        later: @escaping @Sendable (ClientStand) throws -> Void
    ) {
        (self.name, self.script, self.later) = (name, script, later)
    }

    private init(_ name: String, later: @escaping @Sendable (ClientStand) throws -> Void) {
        (self.name, script, self.later) = (name, { _ in }, later)
    }

    static let all: [FailureCase] =
        [FailureCase("nothing")] + device + apple + assertions + gateway + stores

    private static let device =
        AttestationServiceError.allCases.map { error in
            FailureCase("`generateKey`: `\(error)`, once") { stand in
                stand.service.next(.generateKey, .fail(error))
            }
        } + [
            FailureCase("`generateKey`: `unknownSystemFailure`, always") { stand in
                stand.service.always(.generateKey, .fail(.unknownSystemFailure))
            },
            FailureCase("`isSupported` is false") { $0.service.isSupported = false },
        ]

    private static let apple =
        AttestationServiceError.allCases.map { error in
            FailureCase("`attestKey`: `\(error)`, once") { stand in
                stand.service.next(.attestKey, .fail(error))
            }
        } + [
            FailureCase("`attestKey`: `serverUnavailable`, five times") { stand in
                let fail = ScriptedAttestationService.Step.fail(.serverUnavailable)
                stand.service.next(.attestKey, fail, fail, fail, fail, fail)
            },
            FailureCase("`attestKey`: the answer is lost") { stand in
                stand.service.next(.attestKey, .workButFail(.serverUnavailable))
            },
        ]

    private static let assertions =
        AttestationServiceError.allCases.map { error in
            FailureCase("`generateAssertion`: `\(error)`, once") { stand in
                stand.service.next(.generateAssertion, .fail(error))
            }
        }
        + AttestationServiceError.allCases.map { error in
            FailureCase("`generateAssertion`: `\(error)`, always") { stand in
                stand.service.always(.generateAssertion, .fail(error))
            }
        } + [
            FailureCase("the device lost its keys", later: { $0.service.loseKeys() })
        ]

    private static let gateway = [
        FailureCase("no way to `…/challenges`, once") { stand in
            stand.transport.next(ClientStand.challenges, .fail)
        },
        FailureCase("the answer of `…/challenges` is lost") { stand in
            stand.transport.next(ClientStand.challenges, .loseAnswer)
        },
        FailureCase("no way to `…/keys`, once") { stand in
            stand.transport.next(ClientStand.keys, .fail)
        },
        FailureCase("the answer of `…/keys` is lost") { stand in
            stand.transport.next(ClientStand.keys, .loseAnswer)
        },
        FailureCase("the gateway is killed before `…/challenges`") { stand in
            let gateway = stand.gateway
            stand.transport.next(ClientStand.challenges, .run { try gateway.restart() })
        },
        FailureCase("the gateway is killed before `…/keys`") { stand in
            let gateway = stand.gateway
            stand.transport.next(ClientStand.keys, .run { try gateway.restart() })
        },
        FailureCase("the gateway loses its store before `…/keys`") { stand in
            let gateway = stand.gateway
            stand.transport.next(ClientStand.keys, .run { try gateway.restart(wipingStore: true) })
        },
        FailureCase(
            "the gateway is killed later",
            later: { try $0.gateway.restart() }
        ),
        FailureCase(
            "the gateway loses its store later",
            later: { try $0.gateway.restart(wipingStore: true) }
        ),
        FailureCase(
            "the app loses its store later",
            later: { $0.store = MemoryEnrolmentStore() }
        ),
    ]
    private static let stores = [
        FailureCase("the app's store can't be written") { stand in
            let store = ScriptedStore()
            store.always(.fail)
            stand.store = store
        },
        FailureCase("the app's store can't be written after `attestKey`") {
            failAfterAttesting($0)
        },
        FailureCase(
            "the app's store can't be written after `attestKey`; the app starts again later",
            script: { failAfterAttesting($0) },
            later: { ($0.store as? ScriptedStore)?.always(.work) }
        ),
    ]

    private static func failAfterAttesting(_ stand: ClientStand) {
        let store = ScriptedStore()
        stand.store = store
        stand.service.next(.attestKey, .runAfter { store.always(.fail) })
    }
}
