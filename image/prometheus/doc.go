// Package prometheus is the image prom/prometheus: a real Prometheus, linked in, over the world of
// one container.
//
// Scraping, service discovery, storage, PromQL and rules are Prometheus' own code. What is ours is the
// HTTP API in front of them, and where they meet the container: the configuration, rules and secrets
// are read from its files, every connection goes through its network, and the log goes to its
// standard error. The program reads an ordinary prometheus.yml with static_configs and
// kubernetes_sd_configs, takes the usual flags, and serves /api/v1, /metrics and the lifecycle pages.
// Prometheus' own web pages are not in its module; a small one of ours has queries, alerts and targets. It
// sends nothing to an Alertmanager (alerts and their states are in
// /api/v1/alerts), and neither reads nor writes remote storage.
//
// The database maps its files into memory, so it lives in the container's scratch directory on the
// machine and not in --storage.tsdb.path, without a write-ahead log: metrics are lost when the
// container ends, even where a volume would have kept them. Where a container is restored with an age, its
// Prometheus is told its past and continues all series into it; see docs/architecture.md.
package prometheus
