//! Registration, settings, TLS and knobs of both ends.

use crate::fail;
use common::{Arguments, Role, CONNECT_LIMIT, WINDOW_BYTES};
use msquic::ffi::QUIC_PARAM_CONFIGURATION_SETTINGS;
use msquic::{
    BufferRef, CertificateFile, Configuration, Credential, CredentialConfig, CredentialFlags,
    Registration, RegistrationConfig, Settings, Status,
};

pub const KNOBS: &[&str] =
    &["ecn", "initial_rtt_ms", "initial_window_packets", "max_ack_delay_ms", "pacing"];

const IDLE_MS: u64 = 60_000;
const CUBIC: u16 = 0;
const BBR: u16 = 1;

pub fn alpn() -> [BufferRef; 1] {
    [BufferRef::from("perf")]
}

pub fn registration() -> Registration {
    Registration::new(&RegistrationConfig::new())
        .unwrap_or_else(|e| fail(format_args!("msquic cannot be started: {e}")))
}

pub fn configuration(registration: &Registration, arguments: &Arguments) -> Configuration {
    let settings = settings(arguments);
    let configuration = Configuration::open(registration, &alpn(), Some(&settings))
        .unwrap_or_else(|e| fail(format_args!("msquic refuses a setting: {e}")));
    set_flags(&configuration, &settings, arguments);
    let credential = match arguments.role {
        Role::Send => CredentialConfig::new_client()
            .set_credential_flags(CredentialFlags::NO_CERTIFICATE_VALIDATION),
        Role::Recv => {
            let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
            let file = CertificateFile::new(text(&arguments.key), text(&arguments.cert));
            CredentialConfig::new().set_credential(Credential::CertificateFile(file))
        }
    };
    if let Err(e) = configuration.load_credential(&credential) {
        fail(format_args!("cannot use the certificate {}: {e}", arguments.cert.display()));
    }
    configuration
}

fn settings(arguments: &Arguments) -> Settings {
    let knobs = &arguments.knobs;
    let window = WINDOW_BYTES as u32; // a power of two, as msquic asks for
    let mut settings = Settings::new()
        .set_IdleTimeoutMs(IDLE_MS)
        .set_HandshakeIdleTimeoutMs(CONNECT_LIMIT.as_millis() as u64)
        .set_StreamRecvWindowDefault(window)
        .set_ConnFlowControlWindow(window)
        .set_PeerBidiStreamCount(16);
    if arguments.role == Role::Send {
        let controller = if arguments.controller == "bbr" { BBR } else { CUBIC };
        settings = settings.set_CongestionControlAlgorithm(controller);
    }
    if let Some(packets) = knobs.get("initial_window_packets") {
        settings = settings.set_InitialWindowPackets(packets);
    }
    if let Some(rtt_ms) = knobs.get("initial_rtt_ms") {
        settings = settings.set_InitialRttMs(rtt_ms);
    }
    if let Some(delay_ms) = knobs.get("max_ack_delay_ms") {
        settings = settings.set_MaxAckDelayMs(delay_ms);
    }
    settings
}

/// The crate's setters of flags only switch on. Send buffering is off: it would copy all data.
fn set_flags(configuration: &Configuration, settings: &Settings, arguments: &Arguments) {
    let mut raw = *settings.as_ffi_ref();
    raw.set_SendBufferingEnabled(0);
    // SAFETY: the unions hold bit fields only.
    unsafe {
        raw.__bindgen_anon_1.IsSet.set_SendBufferingEnabled(1);
        if arguments.role == Role::Send {
            raw.__bindgen_anon_1.IsSet.set_NetStatsEventEnabled(1);
            raw.__bindgen_anon_2.__bindgen_anon_1.set_NetStatsEventEnabled(1);
        }
        if let Some(on) = arguments.knobs.get::<bool>("ecn") {
            raw.__bindgen_anon_1.IsSet.set_EcnEnabled(1);
            raw.set_EcnEnabled(on.into());
        }
        if let Some(on) = arguments.knobs.get::<bool>("pacing") {
            raw.__bindgen_anon_1.IsSet.set_PacingEnabled(1);
            raw.set_PacingEnabled(on.into());
        }
    }
    let set = msquic::Api::get_ffi().SetParam.expect("msquic has its functions");
    // SAFETY: the settings live over the call, the configuration is open.
    let status = unsafe {
        set(
            configuration.as_raw(),
            QUIC_PARAM_CONFIGURATION_SETTINGS,
            std::mem::size_of_val(&raw) as u32,
            (&raw const raw).cast(),
        )
    };
    if let Err(e) = Status::ok_from_raw(status) {
        fail(format_args!("msquic refuses a setting: {e}"));
    }
}
