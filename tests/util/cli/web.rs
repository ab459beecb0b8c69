//! A real HTTP server on this machine with prepared answers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Gives its answers in turn, repeats the last one, and counts the calls.
pub struct Web {
    port: u16,
    calls: Arc<AtomicUsize>,
}

impl Web {
    /// Each answer is the raw text of a response, such as `HTTP/1.1 429 No\r\nRetry-After: 1\r\n\r\n`.
    pub fn start(answers: &'static [&'static str]) -> Web {
        Web::answering(|_, number| answers[number.min(answers.len() - 1)])
    }

    /// The answer depends on the first line of the request and on the number of requests before it.
    pub fn answering(answer: impl Fn(&str, usize) -> &'static str + Send + 'static) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        // The thread ends with the test program.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let number = count.fetch_add(1, Ordering::SeqCst);
                serve(stream, |asked| answer(asked, number));
            }
        });
        Web { port, calls }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, answer: impl Fn(&str) -> &'static str) {
    let mut head = Vec::new();
    let mut bytes = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&bytes[..count]),
        }
    }
    let asked = String::from_utf8_lossy(&head);
    let _ = stream.write_all(answer(asked.lines().next().unwrap_or_default()).as_bytes());
}
