import Admin
import Lanes

/// The admin listener on a lane of its own.
final class AdminUnit: Sendable {
    /// What is listened on, with the real port.
    let text: String
    private let lane: Lane
    private let descriptor: Int32

    /// Serves what was bound for one lane.
    init(_ sockets: ListenerSet, number: Int) throws(GatewayError) {
        guard let descriptor = sockets.descriptors.first else {
            preconditionFailure("AdminUnit: a listener set without a descriptor")
        }
        self.descriptor = descriptor
        text = sockets.text
        do throws(SocketError) {
            lane = try Lane(number: number)
        } catch {
            throw GatewayError("the admin lane: \(error)", hint: "Raise the limit of descriptors.")
        }
    }

    func start(_ source: some AdminSource) {
        lane.start()
        let (lane, descriptor) = (lane, descriptor)
        lane.perform {
            let server = AdminServer(lane: lane, source: source)
            let listener = Listener(descriptor: descriptor, on: lane)
            // The closure holds the server, the lane holds the listener: both live with the
            // process.
            listener.accepted = { descriptor, peer in server.accept(descriptor, peer) }
            do {
                try listener.start()
            } catch {
                preconditionFailure("AdminUnit: a bound socket can't be watched: \(error)")
            }
        }
    }
}
