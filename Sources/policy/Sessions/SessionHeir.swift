internal import Challenges

/// Where a table and its sessions keep who decides in their place.
final class SessionHeir: Sendable {
    let place = SuccessorPlace()
}
