/// How receipts are renewed: `apple.receipts` of the configuration.
package struct RenewalSettings: Hashable, Sendable {
    /// `renew`: default true. Nothing is renewed without a key for Apple.
    package var renews = true
    /// `rate`: calls a second at most. Default 5/s, 1/s…1000/s.
    package var perSecond = 5
    /// `every`: how long a receipt is left alone after it was renewed, at least. Default 7d,
    /// 1d…60d. Apple gives no newer one within a day, and takes none after 90 days.
    package var every = Duration.seconds(7 * 86_400)

    package init() {}
}
