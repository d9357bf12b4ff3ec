# The module's validations, and what follows from its variables. Nothing is created: each run plans,
# against the AWS that AWS_ENDPOINT_URL names (providers that answer for AWS know nothing ephemeral).
provider "aws" {
  region                      = "eu-west-1"
  access_key                  = "AKIAIOSFODNN7EXAMPLE"
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  s3_use_path_style           = true
}

variables {
  packages = "./tests/packages"
}

run "needs_packages_alone" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.records.name == "bellhop"
    error_message = "Names begin with `name`."
  }

  assert {
    condition     = aws_s3_bucket.blobs.bucket == "bellhop-123456789012-eu-west-1"
    error_message = "The bucket's name has account and region."
  }

  assert {
    condition     = keys(aws_lambda_function.stage) == ["deploy", "evaluate", "ingest", "schedule", "sweep"]
    error_message = "There is a function for each stage."
  }

  assert {
    condition     = { for queue, each in aws_lambda_event_source_mapping.inbox : queue => each.scaling_config[0].maximum_concurrency } == { deploy = 4, evaluate = 2, sweep = 2 }
    error_message = "Deploy has what is left over of ten executions, beside two of ingest and schedule."
  }

  assert {
    condition     = alltrue([for each in aws_lambda_function.stage : each.architectures == tolist(["arm64"]) && length(each.vpc_config) == 0])
    error_message = "Functions run on arm64, in no network."
  }

  assert {
    condition     = keys(aws_cloudwatch_metric_alarm.this) == ["clusters-silent", "clusters-unreachable", "credentials-expire", "dead-letters", "deletions-held", "errors", "ingest-errors", "misses", "oldest-message", "oldest-pending", "promotions-stalled", "recursion", "requests-refused", "silent", "slow", "steps-fail", "throttles"] && length(aws_cloudwatch_dashboard.this) == 1
    error_message = "There are alarms and a dashboard."
  }

  # A new alarm has no data yet, and would alarm at once if that were breaching.
  assert {
    condition     = [for name, each in aws_cloudwatch_metric_alarm.this : name if each.treat_missing_data != "notBreaching"] == ["silent"] && aws_cloudwatch_metric_alarm.this["silent"].treat_missing_data == "missing"
    error_message = "Before the first tick nobody is notified."
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["silent"].evaluation_periods == 10 && alltrue([for each in aws_cloudwatch_metric_alarm.this["silent"].metric_query : one(each.metric).period == 60 if length(each.metric) > 0])
    error_message = "Ten minutes without an invocation are too long."
  }

  assert {
    condition     = { for name in keys(aws_cloudwatch_metric_alarm.this) : name => [for each in aws_cloudwatch_metric_alarm.this[name].metric_query : one(each.metric).metric_name if length(each.metric) > 0] if contains(["clusters-unreachable", "clusters-silent", "credentials-expire", "deletions-held", "promotions-stalled", "steps-fail", "requests-refused", "slow"], name) } == { clusters-unreachable = ["ClustersUnreachable"], clusters-silent = ["ClustersSilent"], credentials-expire = ["CredentialsExpiring"], deletions-held = ["DeletionsHeld"], promotions-stalled = ["PromotionsStalled"], steps-fail = ["Failed"], requests-refused = ["Refused"], slow = ["Latency"] }
    error_message = "Lost clusters, and all that the functions count, has an alarm."
  }

  assert {
    condition     = alltrue([for title in ["From event to applied, in milliseconds", "Clusters", "Refused requests", "Throttles"] : contains([for each in local.graphs : each.title], title)])
    error_message = "The dashboard shows latency, clusters, refusals and throttles."
  }

  assert {
    condition     = length(aws_cloudwatch_query_definition.this) == 10 && length(aws_budgets_budget.monthly) == 0
    error_message = "Queries are saved, and nobody asked for a budget."
  }

  assert {
    condition     = [for each in aws_cloudwatch_metric_alarm.this["silent"].metric_query : one(each.metric).dimensions.FunctionName if length(each.metric) > 0] == ["bellhop-schedule"]
    error_message = "It is the schedule that must be invoked."
  }

  assert {
    condition     = { for stage, each in aws_lambda_function_recursion_config.this : stage => each.recursive_loop } == { deploy = "Allow", evaluate = "Allow", sweep = "Allow" }
    error_message = "Functions that publish to the queue that feeds them go on with their work."
  }

  # What the alarms cost: tests/benchmarks/clouds/module.py counts these from the text.
  assert {
    condition     = sum([for each in local.alarms : length(each.of)]) == 2 * length(aws_sqs_queue.inbox) + 2 * length(aws_lambda_function.stage) + length(aws_lambda_function_recursion_config.this) + 12
    error_message = "Queues and functions are each read by two alarms, those that feed themselves by a third, and twelve alarms read one metric."
  }

  assert {
    condition     = alltrue([for each in aws_lambda_function.stage : length(each.snap_start) == 0]) && length(aws_iam_role_policy.tracing) == 0
    error_message = "Both cost, and are off."
  }

  assert {
    condition     = length(aws_lambda_layer_version.this) == 0 && alltrue([for each in aws_lambda_function.stage : length(coalesce(each.layers, [])) == 0])
    error_message = "Who writes no rules has no layer."
  }

  assert {
    condition     = keys(aws_sqs_queue.inbox) == ["deploy", "evaluate", "sweep"] && keys(aws_sqs_queue.dead) == keys(aws_sqs_queue.inbox) && keys(aws_lambda_event_source_mapping.inbox) == keys(aws_sqs_queue.inbox)
    error_message = "Without charts there is no queue for them."
  }

  assert {
    condition     = local.rights.deploy.publishes == ["apply", "deploy", "evaluate", "review", "status", "sweep"]
    error_message = "Deploy hands nothing over."
  }

  assert {
    condition     = aws_apigatewayv2_stage.ingest[0].default_route_settings[0].throttling_rate_limit == 50 && aws_apigatewayv2_api.ingest[0].disable_execute_api_endpoint == false
    error_message = "Refused requests take no more executions than the queues and the schedule leave."
  }

  assert {
    condition     = length(aws_sqs_queue.events) + length(aws_sqs_queue.events_dead) + length(aws_sqs_queue_policy.events) + length(aws_lambda_event_source_mapping.events) + length(aws_cloudwatch_event_rule.this) == 0
    error_message = "Who names no rules has neither a queue nor a mapping."
  }
}

run "alarms_when_work_waits_by_the_records" {
  command = plan

  variables {
    oldest_message_minutes = 10
    monthly_budget         = 50
    notifications          = ["arn:aws:sns:eu-west-1:123456789012:one", "arn:aws:sns:eu-west-1:123456789012:two"]
  }

  assert {
    condition     = [for name, each in aws_cloudwatch_metric_alarm.this : name if each.insufficient_data_actions != null] == ["silent"]
    error_message = "A schedule that stops is notified of."
  }

  assert {
    condition     = aws_budgets_budget.monthly[0].limit_amount == "50" && one(aws_budgets_budget.monthly[0].cost_filter).values == tolist(["user:bellhop$bellhop"]) && [for each in aws_budgets_budget.monthly[0].notification : one(each.subscriber_sns_topic_arns)] == ["arn:aws:sns:eu-west-1:123456789012:one", "arn:aws:sns:eu-west-1:123456789012:one"]
    error_message = "A budget counts what has the installation's tag, and notifies one topic."
  }

  assert {
    condition     = [for each in aws_cloudwatch_metric_alarm.this["oldest-pending"].metric_query : "${one(each.metric).namespace} ${one(each.metric).metric_name}" if length(each.metric) > 0] == ["Bellhop OldestPending"] && aws_cloudwatch_metric_alarm.this["oldest-pending"].threshold == 600
    error_message = "Queues leave out what was received three times."
  }
}

run "logs_requests_without_secrets" {
  command = plan

  override_resource {
    target          = aws_cloudwatch_log_group.ingest
    override_during = plan
    values          = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/vendedlogs/apis/bellhop-ingest" }
  }

  assert {
    condition     = aws_cloudwatch_log_group.ingest[0].retention_in_days == 30 && length(aws_apigatewayv2_stage.ingest[0].access_log_settings) == 1
    error_message = "The API logs each request."
  }

  assert {
    condition     = toset(values(jsondecode(one(aws_apigatewayv2_stage.ingest[0].access_log_settings).format))) == toset(["$context.httpMethod", "$context.identity.sourceIp", "$context.integrationErrorMessage", "$context.requestId", "$context.requestTime", "$context.responseLatency", "$context.responseLength", "$context.status"])
    error_message = "A line has neither path, query nor header: a webhook's path is a secret."
  }
}

run "logs_no_requests_if_not_wanted" {
  command = plan

  variables {
    access_log = false
  }

  assert {
    condition     = length(aws_cloudwatch_log_group.ingest) + length(aws_apigatewayv2_stage.ingest[0].access_log_settings) == 0
    error_message = "The access log can be left out."
  }
}

run "traces_all_and_snapshots_some" {
  command = plan

  variables {
    tracing    = true
    snap_start = ["deploy", "ingest"]
  }

  assert {
    condition     = alltrue([for each in aws_lambda_function.stage : one(each.tracing_config).mode == "Active"]) && keys(aws_iam_role_policy.tracing) == keys(aws_lambda_function.stage)
    error_message = "Each function is traced, and may write its traces."
  }

  assert {
    condition     = { for stage, each in aws_lambda_function.stage : stage => one(each.snap_start).apply_on if length(each.snap_start) > 0 } == { deploy = "PublishedVersions", ingest = "PublishedVersions" }
    error_message = "Published versions, which aliases name, have a snapshot."
  }
}

run "takes_packages_from_a_bucket" {
  command = plan

  override_resource {
    target          = aws_lambda_layer_version.this
    override_during = plan
    values          = { arn = "arn:aws:lambda:eu-west-1:123456789012:layer:bellhop-cel:1" }
  }

  variables {
    packages       = null
    package_bucket = "releases"
    package_prefix = "bellhop/"
    package_sums   = file("./tests/packages/SHA256SUMS")
    cel            = true
  }

  assert {
    condition     = alltrue([for each in aws_lambda_function.stage : each.filename == null && each.s3_bucket == "releases" && each.s3_key == "bellhop/functions-arm64-${local.build_ids.functions}.zip"])
    error_message = "Functions have the package of this module's sources."
  }

  assert {
    condition     = aws_lambda_layer_version.this["cel-arm64"].s3_key == "bellhop/layer-cel-arm64-${local.build_ids.layer}.zip"
    error_message = "Layers are beside it."
  }

  assert {
    condition     = alltrue([for each in aws_lambda_function.stage : each.s3_object_version == data.aws_s3_object.package["functions-arm64"].version_id && length(each.s3_object_version) > 0])
    error_message = "The version that was compared is taken."
  }
}

run "refuses_a_package_of_a_bucket_with_another_sum" {
  command         = plan
  expect_failures = [data.aws_s3_object.package]

  variables {
    packages       = null
    package_bucket = "releases"
    package_prefix = "changed/"
    package_sums   = file("./tests/packages/SHA256SUMS")
  }
}

run "brings_cel_to_who_judges" {
  command = plan

  override_resource {
    target          = aws_lambda_layer_version.this
    override_during = plan
    values          = { arn = "arn:aws:lambda:eu-west-1:123456789012:layer:bellhop-cel:1" }
  }

  variables {
    cel          = true
    architecture = "x86_64"
  }

  assert {
    condition     = aws_lambda_layer_version.this["cel-x86_64"].filename == "./tests/packages/layer-cel-x86_64-${local.build_ids.layer}.zip" && aws_lambda_layer_version.this["cel-x86_64"].compatible_architectures == toset(["x86_64"])
    error_message = "The layer is of the functions' architecture."
  }

  assert {
    condition     = [for stage, each in aws_lambda_function.stage : stage if length(coalesce(each.layers, [])) > 0] == ["deploy", "evaluate"]
    error_message = "Only deploy and evaluate judge."
  }
}

run "deploys_charts_by_a_function_of_their_own" {
  command = plan

  override_resource {
    target          = aws_lambda_layer_version.this
    override_during = plan
    values          = { arn = "arn:aws:lambda:eu-west-1:123456789012:layer:bellhop-cel:1" }
  }

  variables {
    charts    = true
    cel       = true
    network   = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
    functions = { charts = { memory = 2048 } }
  }

  assert {
    condition     = aws_lambda_function.stage["charts"].architectures == tolist(["x86_64"]) && aws_lambda_function.stage["charts"].filename == "./tests/packages/functions-x86_64-${local.build_ids.functions}.zip" && aws_lambda_function.stage["deploy"].architectures == tolist(["arm64"])
    error_message = "There is a Helm for x86_64 only."
  }

  assert {
    condition     = aws_lambda_function_recursion_config.this["charts"].recursive_loop == "Allow"
    error_message = "A profile of many charts takes many turns."
  }

  assert {
    condition     = aws_lambda_layer_version.this["helm-x86_64"].filename == "./tests/packages/layer-helm-x86_64-${local.build_ids.layer}.zip" && local.environments.charts.BELLHOP_HELM == "/opt/helm/helm" && local.environments.charts.BELLHOP_KUBECTL == "/opt/kubectl/kubectl"
    error_message = "Helm and kubectl are in a layer, where BELLHOP_HELM and BELLHOP_KUBECTL say."
  }

  assert {
    condition     = { for stage, each in aws_lambda_function.stage : stage => length(each.layers) if length(coalesce(each.layers, [])) > 0 } == { charts = 2, deploy = 1, evaluate = 1 }
    error_message = "Charts has Helm's layer and CEL's, and nobody else has Helm's."
  }

  assert {
    condition     = keys(aws_lambda_layer_version.this) == ["cel-arm64", "cel-x86_64", "helm-x86_64"]
    error_message = "CEL's layer is there for both architectures."
  }

  assert {
    condition     = aws_sqs_queue.inbox["charts"].visibility_timeout_seconds == 1800 && contains(keys(aws_sqs_queue.dead), "charts") && contains(keys(aws_lambda_event_source_mapping.inbox), "charts")
    error_message = "Charts have a queue, and one for its dead letters."
  }

  assert {
    condition     = aws_lambda_function.stage["charts"].memory_size == 2048 && aws_lambda_function.stage["charts"].timeout == 300
    error_message = "Its sizes can be set as those of the others."
  }

  assert {
    condition     = length(aws_lambda_function.stage["charts"].vpc_config) == 1
    error_message = "Charts call API servers."
  }

  assert {
    condition     = contains(local.rights.deploy.publishes, "charts") && [for stage, each in local.rights : stage if contains(each.publishes, "charts")] == ["charts", "deploy"]
    error_message = "Deploy hands charts over, and what is left of them comes again."
  }
}

run "leaves_instances_to_ingest_in_a_new_account" {
  command = plan

  override_resource {
    target          = aws_lambda_layer_version.this
    override_during = plan
    values          = { arn = "arn:aws:lambda:eu-west-1:123456789012:layer:bellhop-helm:1" }
  }

  variables {
    charts = true
  }

  assert {
    condition     = { for queue, each in aws_lambda_event_source_mapping.inbox : queue => each.scaling_config[0].maximum_concurrency } == { charts = 2, deploy = 2, evaluate = 2, sweep = 2 }
    error_message = "Of ten instances two are left to ingest and schedule."
  }

  assert {
    condition     = local.queue_of == { apply = "deploy", charts = "charts", confirm = "sweep", deploy = "deploy", evaluate = "evaluate", patient = "evaluate", probe = "sweep", review = "evaluate", status = "deploy", sweep = "sweep" }
    error_message = "The inboxes of a function share a queue."
  }
}

run "gives_what_takes_long_a_queue_of_its_own" {
  command = plan

  variables {
    concurrency = 1000
    functions   = { deploy = { concurrency = 41 }, sweep = { concurrency = 2 } }
  }

  assert {
    condition     = { for queue, each in aws_lambda_event_source_mapping.inbox : queue => each.scaling_config[0].maximum_concurrency } == { apply = 20, deploy = 20, evaluate = 180, review = 180, sweep = 2 }
    error_message = "The queues share nine tenths, within what a function may have."
  }

  assert {
    condition     = { for queue, each in aws_lambda_event_source_mapping.inbox : queue => each.batch_size } == { apply = 3, deploy = 3, evaluate = 10, review = 10, sweep = 3 }
    error_message = "What takes long comes in small batches."
  }

  assert {
    condition     = aws_apigatewayv2_stage.ingest[0].default_route_settings[0].throttling_rate_limit == 500 && local.highest_rate == 4950
    error_message = "A larger quota has room for the usual rate, and for more."
  }

  assert {
    condition     = local.receives == { apply = 840, deploy = 840, evaluate = 1000, review = 1000, sweep = 336 }
    error_message = "A message that nobody reports on is dead-lettered before it expires."
  }
}

run "hides_messages_for_six_time_outs" {
  command = plan

  variables {
    functions = { deploy = { timeout = 100 } }
  }

  assert {
    condition     = aws_sqs_queue.inbox["deploy"].visibility_timeout_seconds == 600
    error_message = "A queue follows the time-out of the function that it feeds."
  }

  assert {
    condition     = aws_lambda_function.stage["deploy"].memory_size == 1024
    error_message = "What is not said stays as it is."
  }
}

run "places_those_that_call_api_servers" {
  command = plan

  variables {
    network = { subnet_ids = ["subnet-1"], security_group_ids = ["sg-1"] }
  }

  assert {
    condition     = [for stage, each in aws_lambda_function.stage : stage if length(each.vpc_config) > 0] == ["deploy", "sweep"]
    error_message = "Only deploy and sweep call API servers."
  }
}

run "makes_neither_alarms_nor_dashboard" {
  command = plan

  variables {
    alarms    = false
    dashboard = false
  }

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.this) + length(aws_cloudwatch_dashboard.this) + length(aws_cloudwatch_query_definition.this) == 0
    error_message = "They can be left out."
  }
}

run "tells_ingest_alone_who_may_send" {
  command = plan

  variables {
    ingest_allow = ["203.0.113.0/24"]
  }

  assert {
    condition     = local.environments.ingest.BELLHOP_INGEST_ALLOW == "203.0.113.0/24"
    error_message = "Ingest is told."
  }
}

run "hears_what_rules_name" {
  command = plan

  variables {
    event_rules = {
      images  = { cluster = "fleet/east", pattern = jsonencode({ source = ["aws.ecr"] }), subject = "detail.repository-name" }
      uploads = { cluster = "fleet/west", pattern = jsonencode({ source = ["aws.s3"] }), bus = "shop" }
    }
  }

  assert {
    condition     = aws_cloudwatch_event_target.this["images"].input_transformer[0].input_template == "{\"cluster\": \"fleet/east\", \"subject\": \"detail.repository-name\", \"event\": <aws.events.event.json>}"
    error_message = "A rule says for which cluster its events count, and where their subject is."
  }

  assert {
    condition     = [for each in aws_cloudwatch_event_rule.this : each.event_bus_name] == ["default", "shop"]
    error_message = "A rule is on the bus that it names."
  }

  assert {
    condition     = aws_sqs_queue.events[0].visibility_timeout_seconds == 180 && length(aws_sqs_queue_policy.events) == 2
    error_message = "The queue follows the time-out of ingest, and both are guarded."
  }
}

run "prints_policies_for_people" {
  command = plan

  override_resource {
    target          = terraform_data.generation
    override_during = plan
    values          = { id = "1f2e3d4c-0000-0000-0000-000000000000" }
  }

  override_resource {
    target          = aws_dynamodb_table.records
    override_during = plan
    values          = { arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/bellhop" }
  }

  override_resource {
    target          = aws_s3_bucket.blobs
    override_during = plan
    values          = { arn = "arn:aws:s3:::bellhop-123456789012-eu-west-1" }
  }

  override_resource {
    target          = aws_secretsmanager_secret.key["sealing"]
    override_during = plan
    values          = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:bellhop-sealing-key-1f2e3d4c-abcdef" }
  }

  override_resource {
    target          = aws_secretsmanager_secret.key["ingest"]
    override_during = plan
    values          = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:bellhop-ingest-key-1f2e3d4c-abcdef" }
  }

  override_resource {
    target          = aws_sqs_queue.inbox
    override_during = plan
    values          = { arn = "arn:aws:sqs:eu-west-1:123456789012:inbox" }
  }

  override_resource {
    target          = aws_sqs_queue.dead
    override_during = plan
    values          = { arn = "arn:aws:sqs:eu-west-1:123456789012:dead" }
  }

  override_resource {
    target          = aws_cloudwatch_log_group.stage
    override_during = plan
    values          = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
  }

  assert {
    condition = toset(flatten([for policy in output.policies : jsondecode(policy).Statement[*].Resource])) == toset([
      "*",
      "arn:aws:dynamodb:eu-west-1:123456789012:table/bellhop",
      "arn:aws:eks:*:123456789012:cluster/*",
      "arn:aws:logs:eu-west-1:123456789012:log-group:group:*",
      "arn:aws:s3:::bellhop-123456789012-eu-west-1",
      "arn:aws:s3:::bellhop-123456789012-eu-west-1/blobs/*",
      "arn:aws:secretsmanager:eu-west-1:123456789012:secret:bellhop-ingest-key-1f2e3d4c-abcdef",
      "arn:aws:secretsmanager:eu-west-1:123456789012:secret:bellhop-sealing-key-1f2e3d4c-abcdef",
      "arn:aws:secretsmanager:eu-west-1:123456789012:secret:bellhop/1f2e3d4c/*",
      "arn:aws:sqs:eu-west-1:123456789012:dead",
      "arn:aws:sqs:eu-west-1:123456789012:inbox",
    ])
    error_message = "They name the installation's resources one by one, and no pattern that another name fits."
  }

  assert {
    condition = {
      for who, policy in output.policies : who => [
        for each in jsondecode(policy).Statement : lookup(each, "Condition", null) if contains(each.Action, "dynamodb:PutItem")
      ]
      } == {
      approver  = [{ "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["ledger/*", "ledgers/*", "promotion"] } }]
      operator  = [{ "ForAllValues:StringNotLike" = { "dynamodb:LeadingKeys" = ["promotion"] } }]
      read_only = []
    }
    error_message = "Approvers write the states of promotions and the event log, and operators all but the former."
  }

  assert {
    condition     = output.bellhop.secrets == "bellhop/1f2e3d4c" && output.bellhop.key_secret == "bellhop-sealing-key-1f2e3d4c"
    error_message = "What a destroy leaves has a generation in its name."
  }
}

run "names_roles_and_dashboards_by_region" {
  command = plan

  variables {
    name                 = "abcdefghijklmnopqrstuvwx"
    charts               = true
    role_path            = "/platform/"
    permissions_boundary = "arn:aws:iam::123456789012:policy/boundary"
  }

  assert {
    condition     = aws_iam_role.stage["deploy"].name == "abcdefghijklmnopqrstuvwx-eu-west-1-deploy" && aws_cloudwatch_dashboard.this[0].dashboard_name == "abcdefghijklmnopqrstuvwx-eu-west-1"
    error_message = "Another region has room for the same name."
  }

  # The longest name of a region, us-isof-south-1, has six letters more than this one.
  assert {
    condition     = alltrue([for role in concat(values(aws_iam_role.stage), [aws_iam_role.scheduler]) : length(role.name) + 6 <= 64])
    error_message = "IAM takes 64 characters."
  }

  assert {
    condition     = alltrue([for role in concat(values(aws_iam_role.stage), [aws_iam_role.scheduler]) : role.path == "/platform/" && role.permissions_boundary == "arn:aws:iam::123456789012:policy/boundary"])
    error_message = "All roles have the path and the boundary."
  }
}

run "seals_with_a_key_of_yours_and_takes_a_restored_table" {
  command = plan

  override_resource {
    target          = terraform_data.generation
    override_during = plan
    values          = { id = "1f2e3d4c-0000-0000-0000-000000000000" }
  }

  variables {
    kms_key_arn         = "arn:aws:kms:eu-west-1:123456789012:key/1"
    kubeconfig_store    = "parameter-store"
    table               = "bellhop-restored"
    deletion_protection = true
  }

  assert {
    condition     = aws_dynamodb_table.records.name == "bellhop-restored" && aws_dynamodb_table.records.ttl[0].enabled && aws_dynamodb_table.records.point_in_time_recovery[0].enabled && aws_dynamodb_table.records.deletion_protection_enabled && aws_dynamodb_table.records.tags == tomap({ bellhop = "bellhop" })
    error_message = "A restored table has the settings of any other."
  }

  assert {
    condition     = output.bellhop.table == "bellhop-restored" && local.environment.BELLHOP_TABLE == "bellhop-restored" && alltrue([for name, each in aws_lambda_function.stage : each.function_name == "bellhop-${name}"])
    error_message = "Functions and the CLI read it, and nothing else has another name."
  }

  assert {
    condition     = toset(flatten([for each in aws_cloudwatch_metric_alarm.this : [for query in each.metric_query : query.metric[0].dimensions.installation if try(query.metric[0].namespace, "") == "Bellhop"]])) == toset(["bellhop-restored"])
    error_message = "Functions name metrics after their table, and alarms look there."
  }

  assert {
    condition     = length(aws_kms_key.this) + length(aws_kms_alias.this) == 0 && output.bellhop.kms_key == "arn:aws:kms:eu-west-1:123456789012:key/1"
    error_message = "There is no key but yours."
  }

  assert {
    condition     = aws_dynamodb_table.records.server_side_encryption[0].kms_key_arn == var.kms_key_arn && aws_secretsmanager_secret.key["sealing"].kms_key_id == var.kms_key_arn && alltrue([for group in aws_cloudwatch_log_group.stage : group.kms_key_id == var.kms_key_arn])
    error_message = "It seals all that there is."
  }

  assert {
    condition     = local.key_statement[0].Resource == ["arn:aws:kms:eu-west-1:123456789012:key/1"]
    error_message = "Policies for people have the key."
  }

  assert {
    condition     = local.key_services == ["dynamodb.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com", "secretsmanager.eu-west-1.amazonaws.com", "ssm.eu-west-1.amazonaws.com"]
    error_message = "Parameter Store may use the key."
  }

  assert {
    condition     = output.bellhop.secrets == "/bellhop/bellhop/1f2e3d4c" && local.environment.BELLHOP_SECRETS == "/bellhop/bellhop/1f2e3d4c"
    error_message = "Functions and people read by the slash that kubeconfigs are parameters."
  }

  assert {
    condition     = local.kubeconfigs == "arn:aws:ssm:eu-west-1:123456789012:parameter/bellhop/bellhop/1f2e3d4c" && local.kubeconfig_actions == { read = ["ssm:GetParameter"], write = ["ssm:DeleteParameter", "ssm:GetParameter", "ssm:PutParameter"] }
    error_message = "Functions have rights to parameters of the installation."
  }

  assert {
    condition     = local.rights.sweep.secrets == { "abandoned/*" = "write", "kubeconfig/*" = "read" }
    error_message = "No function stores the kubeconfig of a cluster."
  }

  assert {
    condition     = toset(flatten(local.kubeconfigs_statements[*].Resource)) == toset([local.kubeconfigs, "${local.kubeconfigs}/*"])
    error_message = "People have no right to other parameters."
  }
}

run "answers_under_a_domain" {
  command = plan

  variables {
    domain_name       = "bellhop.example.com"
    certificate_arn   = "arn:aws:acm:eu-west-1:123456789012:certificate/1"
    ingest_from       = "domain"
    ingest_truststore = { uri = "s3://bucket/ca.pem", version = "v1" }
  }

  assert {
    condition     = aws_apigatewayv2_api.ingest[0].disable_execute_api_endpoint && aws_apigatewayv2_domain_name.ingest[0].mutual_tls_authentication[0].truststore_version == "v1"
    error_message = "No other address leads past the domain, which asks for a certificate."
  }

  assert {
    condition     = output.bellhop.ingest_url == "https://bellhop.example.com" && aws_apigatewayv2_api_mapping.ingest[0].stage == "$default" && local.environments.sweep.BELLHOP_INGEST_URL == "https://bellhop.example.com"
    error_message = "Clusters are told the domain."
  }
}

run "is_called_from_a_network_alone" {
  command = plan

  override_resource {
    target          = aws_api_gateway_rest_api.ingest
    override_during = plan
    values          = { id = "a1b2c3d4e5", execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5" }
  }

  variables {
    ingest_from      = "network"
    ingest_endpoints = ["vpce-0123456789abcdef1", "vpce-0123456789abcdef0"]
  }

  assert {
    condition     = output.bellhop.ingest_url == "https://a1b2c3d4e5-vpce-0123456789abcdef0.execute-api.eu-west-1.amazonaws.com/live" && aws_api_gateway_stage.ingest[0].stage_name == "live"
    error_message = "Clusters are told the address of an endpoint."
  }

  assert {
    condition     = length(aws_apigatewayv2_api.ingest) + length(aws_apigatewayv2_stage.ingest) + length(aws_cloudwatch_log_group.ingest) == 0 && aws_api_gateway_rest_api.ingest[0].endpoint_configuration[0].types == tolist(["PRIVATE"])
    error_message = "Nothing on the Internet leads to ingest."
  }

  assert {
    condition     = jsondecode(aws_api_gateway_rest_api_policy.ingest[0].policy).Statement[0].Condition.StringEquals["aws:SourceVpce"] == ["vpce-0123456789abcdef0", "vpce-0123456789abcdef1"]
    error_message = "The API lets in what comes through the endpoints."
  }

  assert {
    condition     = aws_lambda_permission.ingest.source_arn == "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5/*" && aws_api_gateway_method_settings.ingest[0].settings[0].throttling_rate_limit == 50
    error_message = "The API may call the function, as often as a public one."
  }

  assert {
    condition     = local.alarms["ingest-errors"].dimension == "ApiName" && local.alarms["ingest-errors"].metric == "5XXError"
    error_message = "CloudWatch names this kind of API otherwise."
  }
}

run "takes_a_word_for_a_setting" {
  command = plan

  variables {
    settings = { adopt = "always", turn = 30, hold_agreement = 0, egress_allow = "charts.example.com, *.example.org,10.8.0.0/16,public" }
  }

  assert {
    condition     = local.environment.BELLHOP_ADOPT == "always" && local.environment.BELLHOP_TURN == "30"
    error_message = "Functions are not told the settings as they are given."
  }
}

# One run for all of these: each run starts a provider. Those of `functions` and `concurrency`
# are apart, since they read other variables, and nobody validates them while one of these is bad.
run "refuses_a_bad_value_of_each_variable" {
  command = plan
  expect_failures = [
    var.snap_start,
    var.packages,
    var.package_sums,
    var.event_rules,
    var.certificate_arn,
    var.kms_key_arn,
    var.kubeconfig_store,
    var.operators,
    var.role_path,
    var.permissions_boundary,
    var.name,
    var.architecture,
    var.settings,
    var.eks_clusters,
    var.eks_roles,
    var.ingest_allow,
    var.ingest_from,
    var.log_retention_days,
    var.recovery_days,
    var.oldest_message_minutes,
    var.table,
  ]

  variables {
    snap_start             = ["charts"]
    package_bucket         = "releases"
    package_sums           = null
    event_rules            = { images = { cluster = "east", pattern = "{}" } }
    domain_name            = "bellhop.example.com"
    kms_key_arn            = "alias/mine"
    kubeconfig_store       = "records"
    operators              = ["platform"]
    role_path              = "platform"
    permissions_boundary   = "boundary"
    name                   = "Bellhop"
    architecture           = "arm"
    settings               = { sweep_intervall = 600 }
    eks_clusters           = ["production"]
    eks_roles              = ["arn:aws:iam::*:role/*"]
    ingest_allow           = ["203.0.113.7"]
    ingest_from            = "everywhere"
    log_retention_days     = 10
    recovery_days          = 0
    oldest_message_minutes = 1
    table                  = "a table"
  }
}

run "refuses_a_pattern_of_a_rule_and_another_word" {
  command         = plan
  expect_failures = [var.event_rules, var.settings, var.ingest_from, var.ingest_allow]

  variables {
    event_rules  = { images = { cluster = "fleet/east", pattern = "aws.ecr" } }
    settings     = { adopt = "never", egress_allow = "https://charts.example.com" }
    ingest_from  = "domain"
    ingest_allow = [for each in range(150) : "10.${floor(each / 250)}.${each % 250}.0/24"]
  }
}

run "refuses_a_word_for_a_number_and_more_requests_than_executions_refuse" {
  command         = plan
  expect_failures = [var.settings, var.ingest_rate]

  variables {
    settings    = { turn = "long" }
    ingest_rate = 500
  }
}

run "refuses_more_attempts_than_are_counted_and_no_requests" {
  command         = plan
  expect_failures = [var.settings, var.ingest_rate, var.ingest_truststore]

  variables {
    settings          = { attempts = 51 }
    ingest_rate       = 0
    ingest_truststore = { uri = "s3://bucket/ca.pem" }
  }
}

run "refuses_fewer_instances_than_queues_feed" {
  command         = plan
  expect_failures = [var.functions]

  variables {
    concurrency = 1000
    functions   = { deploy = { concurrency = 3 } }
  }
}

run "refuses_a_stage_and_an_endpoint" {
  command         = plan
  expect_failures = [var.functions, var.ingest_endpoints]

  variables {
    functions        = { execute = { memory = 512 } }
    ingest_endpoints = ["vpc-1"]
  }
}

run "refuses_a_time_out_and_a_setting_that_no_function_reads" {
  command         = plan
  expect_failures = [var.functions, var.settings]

  variables {
    functions = { sweep = { timeout = 901 } }
    settings  = { workers = 0 }
  }
}

run "refuses_sizes_of_a_function_that_is_not_there" {
  command         = plan
  expect_failures = [var.functions]

  variables {
    functions = { charts = { memory = 2048 } }
  }
}

run "refuses_a_concurrency_that_no_account_has" {
  command         = plan
  expect_failures = [var.concurrency]

  variables {
    concurrency = 9
  }
}
