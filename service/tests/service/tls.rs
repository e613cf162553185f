//! Redis over TLS.

use std::path::Path;

use crate::server::{Server, free_port, not_tested};
use crate::service::{RULES, Service};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Writes a certificate of an authority, and one of `localhost` with its key that the authority has signed.
fn certify(folder: &Path) {
    let (mut authority, authority_key) = (CertificateParams::default(), KeyPair::generate().unwrap());
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(folder.join("authority.pem"), authority.self_signed(&authority_key).unwrap().pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    std::fs::write(folder.join("server.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}

/// A server that speaks TLS on the port that comes with it; `None` if it was built without.
fn with_tls(folder: &Path) -> Option<(Server, u16)> {
    let (server, port) = (Server::start(), free_port());
    let file = |name: &str| folder.join(name).display().to_string();
    let (certificate, key, listens) = (file("server.pem"), file("server.key"), port.to_string());
    let options = ["tls-cert-file", &certificate, "tls-key-file", &key, "tls-auth-clients", "no", "tls-port", &listens];
    let set = server.connect().try_ask::<String>(&[&["CONFIG", "SET"], &options[..]].concat());
    if let Err(error) = set {
        not_tested(&format!("Redis over TLS: {error}"));
        return None;
    }
    Some((server, port))
}

const QUESTION: &str = r#"{"client":"user:1","policy":"login"}"#;

#[test]
fn redis_over_tls_decides_if_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path());
    let Some((_server, port)) = with_tls(folder.path()) else { return };
    let url = format!("rediss://localhost:{port}");
    let authority = folder.path().join("authority.pem").display().to_string();

    // How long a handshake takes on a busy machine is not the subject.
    let patient = ["--timeout-ms", "20000"];
    let trusting = Service::within(&[("SSL_CERT_FILE", &authority)], Some(&url), RULES, &patient);
    let answer = trusting.check(QUESTION);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["policies"][0]["source"], "redis");

    // Who does not know the authority does not speak to the server, and says why.
    let wary = Service::with(Some(&url), RULES, &[]);
    assert_eq!(wary.check(QUESTION).status, 503);
    assert!(wary.log().contains("cannot connect to Redis: "), "{}", wary.log());
    assert!(wary.log().to_lowercase().contains("cert"), "{}", wary.log());
}
