package import HTTPWire

/// Whose requests go to origins on a lane.
package protocol OriginHost: AnyObject {
    /// Where responses' heads are read.
    var heads: HeadScratch { get }
    /// Counts what happens on the way to a server.
    func note(_ event: OriginEvent)
}
