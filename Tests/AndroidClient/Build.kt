package android.os

class Build {
    object VERSION {
        @JvmField val SDK_INT = 36
    }
}
