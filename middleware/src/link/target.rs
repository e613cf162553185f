//! What is asked: one server, or a cluster.

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisResult, Value,
};
#[cfg(feature = "cluster")]
use redis::{cluster::ClusterClient, cluster_async::ClusterConnection, cluster_routing as routing};

use super::RedisOptions;

/// How many calls may wait to be written. The crate's own 50 would make busy instances wait for each other.
const PIPELINE_BUFFER: usize = 4096;

/// What is asked.
pub(super) enum Target {
    One(Box<(Client, AsyncConnectionConfig)>),
    #[cfg(feature = "cluster")]
    Cluster(Box<ClusterClient>),
}

/// A connection to it. Clones share it.
#[derive(Clone)]
pub(super) enum Connection {
    One(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(ClusterConnection),
}

/// Where it is, for people and for spans.
pub(super) struct Address {
    pub(super) text: String,
    /// The host, or the path of a socket that has no port.
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

impl Address {
    fn of(address: &ConnectionAddr) -> Self {
        let text = address.to_string();
        match address {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Self { text, host: host.clone(), port: Some(*port) }
            }
            _ => Self { host: text.clone(), text, port: None },
        }
    }
}

impl Target {
    /// What the options name, and where it is.
    ///
    /// Errors: a URL that is none.
    pub(super) fn new(options: &RedisOptions) -> RedisResult<(Self, Address)> {
        #[cfg(feature = "cluster")]
        if options.cluster {
            return cluster(options);
        }
        let info = info(&options.url)?;
        let address = Address::of(info.addr());
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.connect_timeout))
            // Every call has a deadline of its own, which counts the time to connect, too.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(PIPELINE_BUFFER);
        let client = Client::open(info.set_tcp_settings(tcp()))?;
        Ok((Self::One(Box::new((client, config))), address))
    }

    pub(super) async fn connect(&self) -> RedisResult<Connection> {
        match self {
            Self::One(one) => {
                let (client, config) = &**one;
                Ok(Connection::One(client.get_multiplexed_async_connection_with_config(config).await?))
            }
            #[cfg(feature = "cluster")]
            Self::Cluster(client) => Ok(Connection::Cluster(client.get_async_connection().await?)),
        }
    }
}

impl Connection {
    pub(super) async fn send(&mut self, command: Cmd) -> RedisResult<Value> {
        match self {
            Self::One(connection) => command.query_async(connection).await,
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => {
                let routing = route(&command);
                connection.route_command(command, routing).await
            }
        }
    }
}

/// Nagle's algorithm would hold back calls that follow one another.
fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

fn info(url: &str) -> RedisResult<ConnectionInfo> {
    let info = url.into_connection_info()?;
    #[cfg(feature = "tls")]
    if let ConnectionAddr::TcpTls { .. } = info.addr() {
        // Of several libraries of cryptography in a program, rustls wants one to be named. What is named already stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    Ok(info)
}

#[cfg(feature = "cluster")]
fn cluster(options: &RedisOptions) -> RedisResult<(Target, Address)> {
    let nodes: Vec<_> = options.url.split(',').map(|url| info(url.trim())).collect::<RedisResult<_>>()?;
    let first = nodes.first().map(ConnectionInfo::addr).map(Address::of);
    let client = ClusterClient::builder(nodes)
        .tcp_settings(tcp())
        .connection_timeout(options.connect_timeout)
        // A node that does not answer is given up with the request. The rest of it is for another node that is told of.
        .response_timeout(options.timeout)
        .build()?;
    let address = first.unwrap_or_else(|| Address { text: String::new(), host: String::new(), port: None });
    Ok((Target::Cluster(Box::new(client)), address))
}

/// The nodes that a command is for. The client does not know the commands of the module: their first argument is a key but for these.
#[cfg(feature = "cluster")]
fn route(command: &Cmd) -> routing::RoutingInfo {
    use routing::{MultipleNodeRoutingInfo, ResponsePolicy, Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
    let mut words = command.args_iter().filter_map(|word| match word {
        redis::Arg::Simple(bytes) => Some(bytes),
        _ => None,
    });
    let key = match words.next() {
        Some(b"RL.TOP") => {
            let all = (MultipleNodeRoutingInfo::AllMasters, Some(ResponsePolicy::CombineArrays));
            return RoutingInfo::MultiNode(all);
        }
        // Behind their number.
        Some(b"RL.MTAKE") => words.nth(1),
        _ => words.next(),
    };
    let node = |key| SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
    RoutingInfo::SingleNode(key.map_or(SingleNodeRoutingInfo::RandomPrimary, node))
}
