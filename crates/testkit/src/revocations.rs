//! An OCSP responder and a place for revocation lists, which the `openssl` program signs; also one
//! that misbehaves.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use crate::tools::run;
use crate::{pause, site};

/// What it does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationFault {
    /// It says nothing.
    Silent,
    /// It sends a byte now and then, for ever.
    Slow,
    /// It sends without an end.
    Huge,
    /// What it sends is neither a response nor a list.
    Garbage,
    /// It sends the client to itself.
    Redirect,
    /// Another key signs.
    OtherKey,
    /// The list is from another year.
    Stale,
    /// All serial numbers are revoked.
    All,
}

#[derive(Default)]
struct State {
    /// The files of the certificate that signs, and of its key.
    signer: Option<(PathBuf, PathBuf)>,
    /// Revoked serial numbers in hexadecimal, with the reasons as `openssl` writes them.
    revoked: BTreeMap<String, String>,
    fault: Option<RevocationFault>,
    asked: usize,
}

/// A running one; it ends with the process.
pub struct RevocationServer {
    address: SocketAddr,
    dir: PathBuf,
    state: Arc<Mutex<State>>,
}

impl RevocationServer {
    /// Starts one that signs nothing yet.
    ///
    /// # Panics There is no port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            dir: site::temp_dir(),
            state: Arc::default(),
        };
        let (state, dir) = (server.state.clone(), server.dir.clone());
        thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let (state, dir) = (state.clone(), dir.join(number.to_string()));
                thread::spawn(move || {
                    let _gone = serve(stream, &state, &dir);
                });
            }
        });
        server
    }

    /// The URL of the responder.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The URL of the list.
    #[must_use]
    pub fn list_url(&self) -> String {
        format!("http://{}/list", self.address)
    }

    /// From now on this authority signs; both in PEM form.
    ///
    /// # Panics They cannot be written.
    pub fn sign_as(&self, (cert, key): &(String, String)) {
        let files = (self.dir.join("signer.pem"), self.dir.join("signer.key"));
        fs::write(&files.0, cert).unwrap();
        fs::write(&files.1, key).unwrap();
        self.state().signer = Some(files);
    }

    /// From now on the certificate with this serial number is revoked.
    pub fn revoke(&self, serial: &str, reason: &str) {
        self.state().revoked.insert(serial.to_uppercase(), reason.to_owned());
    }

    /// From now on it misbehaves so, or does not.
    pub fn misbehave(&self, fault: Option<RevocationFault>) {
        self.state().fault = fault;
    }

    /// How many requests came.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.state().asked
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Drop for RevocationServer {
    fn drop(&mut self) {
        if std::env::var_os("BOLIDE_TEST_KEEP").is_none() {
            let _gone = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Answers one request.
fn serve(mut stream: TcpStream, state: &Mutex<State>, dir: &Path) -> std::io::Result<()> {
    let (head, body) = request(&mut stream)?;
    let path = head.split(' ').nth(1).unwrap_or("").to_owned();
    let mut known = state.lock().unwrap();
    known.asked += 1;
    let (fault, signer, revoked) = (known.fault, known.signer.clone(), known.revoked.clone());
    drop(known);
    let mut send = |kind: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {kind}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)
    };
    match fault {
        Some(RevocationFault::Silent) => {
            pause(120_000);
            return Ok(());
        }
        Some(RevocationFault::Slow) => loop {
            send("application/ocsp-response", b"0")?;
            pause(100);
        },
        Some(RevocationFault::Huge) => loop {
            send("application/ocsp-response", &[0x30; 1 << 16])?;
        },
        Some(RevocationFault::Garbage) => return send("application/ocsp-response", b"nonsense"),
        Some(RevocationFault::Redirect) => {
            let head =
                format!("HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\n\r\n");
            return stream.write_all(head.as_bytes());
        }
        _ => {}
    }
    let Some(signer) = signer else { return Ok(()) };
    fs::create_dir_all(dir)?;
    let (script, kind) = match path.starts_with("/list") {
        true => (LIST, "application/pkix-crl"),
        false => (RESPONSE, "application/ocsp-response"),
    };
    if head.starts_with("GET ") {
        let escaped = path.trim_start_matches('/');
        let text = escaped.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=");
        fs::write(dir.join("request.txt"), text)?;
    } else {
        fs::write(dir.join("request"), body)?;
    }
    let revoked: String =
        revoked.iter().map(|(serial, reason)| format!("{serial} {reason}\n")).collect();
    fs::write(dir.join("revoked"), revoked)?;
    let word = match fault {
        Some(RevocationFault::OtherKey) => "other",
        Some(RevocationFault::Stale) => "stale",
        Some(RevocationFault::All) => "all",
        _ => "right",
    };
    let paths = [dir, &signer.0, &signer.1].map(|path| path.to_str().unwrap().to_owned());
    let args = ["-ec", script, "sh", &paths[0], &paths[1], &paths[2], word];
    let _quiet = run("sh", args).succeeded();
    let signed = fs::read(dir.join("signed"))?;
    let _gone = fs::remove_dir_all(dir);
    send(kind, &signed)
}

fn request(stream: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&all[..end]).into_owned();
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.trim().parse().unwrap());
            if all.len() >= end + 4 + length {
                return Ok((head, all[end + 4..].to_vec()));
            }
        }
        match stream.read(&mut part)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            len => all.extend_from_slice(&part[..len]),
        }
    }
}

/// Writes `index`: all revoked serial numbers, and the one that is asked about.
const RESPONSE: &str = "cd \"$1\"
    [ -e request ] || openssl base64 -d -A -in request.txt -out request
    serial=$(openssl ocsp -reqin request -req_text -noverify |
        sed -n 's/ *Serial Number: *//p' | head -1)
    end=361130000000Z; from=261101000000Z
    { while read -r gone reason; do
        printf 'R\\t%s\\t%s,%s\\t%s\\tunknown\\t/CN=x\\n' $end $from \"$reason\" \"$gone\"
      done <revoked
      case $4 in
      all) printf 'R\\t%s\\t%s,superseded\\t%s\\tunknown\\t/CN=x\\n' $end $from \"$serial\" ;;
      *) grep -q \"^$serial \" revoked ||
            printf 'V\\t%s\\t\\t%s\\tunknown\\t/CN=x\\n' $end \"$serial\" ;;
      esac; } >index
    signer=$2 key=$3
    case $4 in
    other) openssl req -x509 -nodes -days 9 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \\
        -subj /CN=other -keyout other.key -out other.pem
        signer=other.pem key=other.key ;;
    esac
    openssl ocsp -index index -CA \"$2\" -rsigner $signer -rkey $key -reqin request \\
        -respout signed -ndays 365";

/// Writes the list of all revoked serial numbers.
const LIST: &str = "cd \"$1\"
    end=361130000000Z; from=261101000000Z
    while read -r gone reason; do
        printf 'R\\t%s\\t%s,%s\\t%s\\tunknown\\t/CN=x\\n' $end $from \"$reason\" \"$gone\"
    done <revoked >index
    printf '[ca]\\ndefault_ca=own\\n[own]\\ndatabase=index\\ndefault_md=sha256\\n' >ca.cnf
    signer=$2 key=$3 more='-crldays 365'
    case $4 in
    other) openssl req -x509 -nodes -days 9 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \\
        -subj \"$(openssl x509 -in \"$2\" -noout -subject -nameopt compat | sed 's/subject=//')\" \\
        -keyout other.key -out other.pem
        signer=other.pem key=other.key ;;
    stale) more='-crl_lastupdate 20250101000000Z -crl_nextupdate 20250102000000Z' ;;
    esac
    openssl ca -gencrl -config ca.cnf -keyfile $key -cert $signer $more -out list.pem
    openssl crl -in list.pem -outform DER -out signed";
