import Foundation

/// A service whose calls end after a while. A call that takes longer counts as `serverUnavailable`,
/// and goes on by itself.
struct TimedService: Sendable {
    typealias Work<Value: Sendable> = SharedWork<Result<Value, AttestationServiceError>>

    let service: any AttestationService
    let clock: any ClientClock
    /// How long a key or an attestation may take, in seconds.
    let wait: Double

    func generateKey() async -> Result<String, AttestationServiceError> {
        let time = clock.now.addingTimeInterval(wait)
        let work = Work<String>()
        Task {
            do throws(AttestationServiceError) {
                work.end(with: .success(try await service.generateKey()))
            } catch {
                work.end(with: .failure(error))
            }
        }
        return await result(of: work, until: time)
    }

    /// Begins to have a key attested.
    func attesting(_ keyID: String, _ hash: Data) -> Work<Data> {
        let work = Work<Data>()
        Task {
            do throws(AttestationServiceError) {
                let object = try await service.attestKey(keyID, clientDataHash: hash)
                work.end(with: .success(object))
            } catch {
                work.end(with: .failure(error))
            }
        }
        return work
    }

    func assertion(
        _ keyID: String,
        _ hash: Data,
        within seconds: Double
    ) async -> Result<Data, AttestationServiceError> {
        let time = clock.now.addingTimeInterval(seconds)
        let work = Work<Data>()
        Task {
            do throws(AttestationServiceError) {
                let object = try await service.generateAssertion(keyID, clientDataHash: hash)
                work.end(with: .success(object))
            } catch {
                work.end(with: .failure(error))
            }
        }
        return await result(of: work, until: time)
    }

    /// What a call came to, or `serverUnavailable` at a time.
    func result<Value>(
        of work: Work<Value>,
        until time: Date
    ) async -> Result<Value, AttestationServiceError> {
        await work.value(until: time, by: clock) ?? .failure(.serverUnavailable)
    }
}
