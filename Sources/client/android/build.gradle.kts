// The client as a module of an app's build: put this folder beside the app, say `include(":portcullis")` and
// `project(":portcullis").projectDir = file("…/android")` in settings.gradle.kts, and
// `implementation(project(":portcullis"))` in the app. The versions of the plugins are the app's.
plugins {
    id("com.android.library")
    kotlin("android")
}

android {
    namespace = "portcullis.client"
    compileSdk = 34

    defaultConfig {
        minSdk = 26
        consumerProguardFiles("consumer-rules.pro")
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }

    sourceSets["main"].java.srcDir("src/main/kotlin")
}

kotlin {
    // The files with `internal` parts are one module.
    jvmToolchain(17)
}

dependencies {
    // None but the Kotlin standard library, which the plugin brings.
}
