/// What happens on the way to a server.
package enum OriginEvent {
    case connectBegan
    case connectFailed
    case connectionReused
}
