package import Foundation
package import PortcullisClient
import PortcullisClientTesting
import Synchronization

/// A service that makes no device token, or makes it late, as a script says, and counts its calls.
package final class ScriptedDeviceTokenService: DeviceTokenService {
    /// What becomes of one call.
    package enum Step: Sendable {
        /// A token is made.
        case work
        /// The call fails.
        case fail(AttestationServiceError)
        /// It waits for a latch, then a token is made.
        case wait(Latch)
        /// It returns these bytes.
        case bring(Data)
    }

    private struct State {
        var isSupported = true
        var lasting = Step.work
        var calls = 0
        var tokens: [String] = []
    }

    private let service: SoftwareDeviceTokenService
    private let state = Mutex(State())

    package init(device: String = "phone") {
        service = SoftwareDeviceTokenService(device: device)
    }

    package var isSupported: Bool {
        get { state.withLock(\.isSupported) }
        set { state.withLock { $0.isSupported = newValue } }
    }

    /// How often it was asked.
    package var calls: Int { state.withLock(\.calls) }

    /// What it made, as the field has it.
    package var tokens: [String] { state.withLock(\.tokens) }

    /// Sets what becomes of all calls.
    package func always(_ step: Step) { state.withLock { $0.lasting = step } }

    package func generateToken() async throws(AttestationServiceError) -> Data {
        let step = state.withLock { state in
            state.calls += 1
            return state.lasting
        }
        switch step {
        case .work: break
        case .fail(let error): throw error
        case .wait(let latch): await latch.pass()
        case .bring(let data): return data
        }
        let token = service.generateToken()
        state.withLock { $0.tokens.append(token.base64EncodedString()) }
        return token
    }
}
