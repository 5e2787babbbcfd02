import CLinux
import ConfigurationReading
import EventLoops
import Foundation
import Glibc
import HTTPWire

// Checks of the machine: clock, descriptors, addresses.
extension Doctor {
    /// 2026-01-01. No version of this program is older.
    private static let earliest: Int64 = 1_767_225_600

    /// Certificates, attestations and dated rollouts depend on the clock.
    static var clock: Finding {
        guard time(nil) >= earliest else {
            return .error(
                .clock,
                "the clock of this machine is years behind: certificates and attestations will "
                    + "be refused as not valid yet",
                next: "set it, and have it kept right: timedatectl set-ntp true"
            )
        }
        switch clinux_clock_is_kept() {
        case 1: return .ok(.clock, "a program keeps the clock right")
        case 0:
            return .warning(
                .clock,
                "no program keeps the clock right; when it is minutes off, certificates and "
                    + "attestations are refused, and dated rollouts go wrong",
                next: "timedatectl set-ntp true, or install chrony; nothing in a container or "
                    + "virtual machine whose host keeps the clock"
            )
        default: return .ok(.clock, "the kernel does not say whether the clock is kept right")
        }
    }

    /// A gateway with fewer is full at some thousand clients.
    private static let descriptorsWanted: UInt64 = 8_192

    /// - configuration: the configuration that needs them; `nil` where it is invalid.
    static func descriptors(_ configuration: GatewayConfiguration?) -> Finding {
        let most = DescriptorLimit.most
        guard most < 1 << 30 else { return .ok(.descriptors, "there is no limit") }
        let requests = most / 8 * 7 / 2
        let found = "\(most) may be open, enough for about \(requests) requests at a time"
        guard most < descriptorsWanted else { return .ok(.descriptors, found) }
        return .warning(
            .descriptors,
            found + "; the gateway accepts nobody while they are used up",
            next: "ulimit -Hn 262144 where it is started, or LimitNOFILE=262144 in its unit"
        )
    }

    // MARK: Addresses

    /// Whether the gateway's addresses can be bound here. `check` checks sockets in the file
    /// system.
    static func addresses(_ configuration: GatewayConfiguration) -> [Finding] {
        let all = configuration.listeners.map(\.address) + [configuration.admin].compactMap(\.self)
        return all.compactMap { address in
            guard case .ip(let ip, let port) = address, port != 0,
                let socket = address.socketAddress
            else { return nil }
            switch trial(socket) {
            case 0: return .ok(.addresses, "\(address.text) is free")
            case EADDRINUSE: return holder(of: port, address, configuration)
            case EACCES:
                return .error(
                    .addresses,
                    "\(address.text): user \(geteuid()) may not listen on a port below 1024",
                    next: "start it as root with process.user, or with CAP_NET_BIND_SERVICE as "
                        + "the systemd unit does"
                )
            case EADDRNOTAVAIL:
                return .error(
                    .addresses,
                    "\(address.text): no interface of this machine has \(ip.text)",
                    next: "an address that `ip address` shows, or 0.0.0.0 or [::] for all"
                )
            case let code:
                return .error(
                    .addresses,
                    "\(address.text): \(String(cString: strerror(code)))",
                    next: "another address"
                )
            }
        }
    }

    /// Binds an address as a start does, and releases it.
    ///
    /// - Returns: the code of the error; 0 for none.
    private static func trial(_ address: SocketAddress) -> Int32 {
        do throws(SocketError) {
            close(try Listener.bound(to: address))
            return 0
        } catch {
            return error.code
        }
    }

    private static func holder(
        of port: UInt16,
        _ address: ServerAddress,
        _ configuration: GatewayConfiguration
    ) -> Finding {
        let next = "stop that program, or choose another port (`ss -ltnp` lists them)"
        guard let holder = PortHolder(listeningOn: port) else {
            // It may also be a gateway: only root can inspect processes of other users.
            return .warning(
                .addresses,
                "\(address.text) is held by a process of another user",
                next: "nothing when it is a gateway; else \(next)"
            )
        }
        let found = "\(address.text) is held by \(holder.text)"
        if holder.isGateway {
            let file = PortHolder.resolved(
                configuration.place(of: "").file,
                in: FileManager.default.currentDirectoryPath
            )
            guard let other = holder.configuration, other != file else {
                return .ok(.addresses, found + ", a gateway of this configuration")
            }
            return .error(
                .addresses,
                found + ", a gateway of another configuration, \(other)",
                next: "choose another address here or there, or stop that gateway"
            )
        }
        if holder.isServiceManager { return .ok(.addresses, found + ", for portcullis.socket") }
        return .error(.addresses, found, next: next)
    }
}
