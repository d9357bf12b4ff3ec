# The queries of docs/how-to/read-the-logs.md, word by word: a saved query costs nothing.
locals {
  queries = {
    "All decisions for one cluster"               = <<-EOT
      fields @timestamp, what, object, source, trigger, profile, detail
      | filter cluster = "prod/eu-1" and ispresent(what)
      | sort @timestamp asc
    EOT
    "All results of one event"                    = <<-EOT
      fields @timestamp, what, cluster, object, profile, detail, ms
      | filter trace like "3f9a1c20"
      | sort @timestamp asc
    EOT
    "Failures and their number"                   = <<-EOT
      fields cluster, profile, detail
      | filter what = "failed"
      | stats count(*) as times, latest(@timestamp) as last by cluster, profile, detail
      | sort times desc
    EOT
    "Latency from the event to the cluster"       = <<-EOT
      filter what = "applied" and ispresent(since_ring_ms)
      | stats count(*) as times, pct(since_ring_ms, 50) as median, pct(since_ring_ms, 99) as slow by bin(5m)
    EOT
    "Duration of each step"                       = <<-EOT
      filter ispresent(ms)
      | stats count(*) as times, avg(ms) as mean, max(ms) as longest by what
    EOT
    "Changes that only resyncs found, by cluster" = <<-EOT
      filter what = "missed"
      | stats sum(objects) as missed by cluster
      | sort missed desc
    EOT
    "EventSources with the most matches"          = <<-EOT
      filter what = "matched"
      | stats count(*) as times by source, cluster
      | sort times desc
      | limit 20
    EOT
    "Requests that ingest refused"                = <<-EOT
      filter message = "Refused a request"
      | stats count(*) as times by cluster, status
    EOT
    "Unexpected errors"                           = <<-EOT
      fields @timestamp, message, stage, error
      | filter severity = "ERROR"
      | sort @timestamp desc
      | limit 50
    EOT
  }

  # The functions do not see these requests.
  api_queries = {
    "Requests that the API throttled" = <<-EOT
      filter status = 429
      | stats count(*) as times by bin(5m)
    EOT
  }
}

resource "aws_cloudwatch_query_definition" "this" {
  for_each = var.dashboard ? merge(
    { for title, query in local.queries : title => { query = query, groups = [for group in aws_cloudwatch_log_group.stage : group.name] } },
    { for title, query in local.api_queries : title => { query = query, groups = aws_cloudwatch_log_group.ingest[*].name } if length(aws_cloudwatch_log_group.ingest) > 0 },
  ) : {}

  name            = "${var.name}/${each.key}"
  query_string    = trimspace(each.value.query)
  log_group_names = each.value.groups
}
