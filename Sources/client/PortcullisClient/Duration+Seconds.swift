extension Duration {
    /// In seconds, as ``ClientClock`` and `Date` count.
    var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
