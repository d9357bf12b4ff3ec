# The module's validations, and what follows from its variables. Nothing is created: Google's answers
# are mocked, by the schemas of its providers.
mock_provider "google-beta" {}

mock_provider "time" {}

mock_provider "google" {
  mock_data "google_client_config" {
    defaults = {
      project = "acme"
      region  = "europe-west1"
    }
  }

  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }

  mock_data "google_cloud_run_v2_service" {
    defaults = { template = [{ containers = [{ image = "images/ingest:version_1", base_image_uri = "base" }] }] }
  }

  mock_resource "google_cloudfunctions2_function" {
    defaults = { service_config = { uri = "https://service-ew.a.run.app" } }
  }

  override_resource {
    target = google_service_account.this["ingest"]
    values = { member = "ingest" }
  }

  override_resource {
    target = google_service_account.this["evaluate"]
    values = { member = "evaluate" }
  }

  override_resource {
    target = google_service_account.this["deploy"]
    values = { member = "deploy" }
  }

  override_resource {
    target = google_service_account.this["sweep"]
    values = { member = "sweep" }
  }

  override_resource {
    target = google_service_account.this["schedule"]
    values = { member = "schedule" }
  }

  override_resource {
    target = google_service_account.this["build"]
    values = { member = "build" }
  }

  override_resource {
    target = google_service_account.this["push"]
    values = { member = "push", name = "push", email = "bellhop-push@acme.iam.gserviceaccount.com" }
  }

  override_resource {
    target = google_service_account.this["tick"]
    values = { member = "tick", email = "bellhop-tick@acme.iam.gserviceaccount.com" }
  }
}

variables {
  packages  = "./tests/packages"
  operators = ["group:operators@example.com"]
  readers   = ["group:operators@example.com", "user:reader@example.com"]
}

run "makes_an_installation" {
  assert {
    condition     = google_firestore_database.records.name == "bellhop"
    error_message = "Names begin with `name`."
  }

  assert {
    condition     = google_storage_bucket.blobs.name == "bellhop-acme"
    error_message = "The bucket's name has the project."
  }

  assert {
    condition     = keys(google_cloudfunctions2_function.stage) == ["deploy", "evaluate", "ingest", "schedule", "sweep"]
    error_message = "There is a function for each stage."
  }

  assert {
    condition     = google_storage_bucket_object.source["evaluate"].source == "./tests/packages/evaluate-${local.build_id}.zip"
    error_message = "Who writes no rules in CEL has no runtime of it."
  }

  assert {
    condition     = alltrue([for each in google_cloudfunctions2_function.stage : length(each.service_config[0].direct_vpc_network_interface) == 0])
    error_message = "Functions run in no network."
  }

  assert {
    condition     = toset([for each in google_cloudfunctions2_function.stage : each.service_config[0].ingress_settings]) == toset(["ALLOW_INTERNAL_ONLY"]) && length(google_cloud_run_v2_service_iam_member.ingest) == 0
    error_message = "No function is called from outside, and no grant names everybody."
  }

  assert {
    condition     = google_cloud_run_v2_service.ingest["ingest"].name == "bellhop-ingest" && google_cloud_run_v2_service.ingest["ingest"].invoker_iam_disabled && google_cloud_run_v2_service.ingest["ingest"].ingress == "INGRESS_TRAFFIC_ALL"
    error_message = "Anybody calls the service of ingest, without a grant."
  }

  assert {
    condition     = google_cloudfunctions2_function.stage["ingest"].name == "bellhop-ingest-build" && google_cloud_run_v2_service.ingest["ingest"].template[0].containers[0].image == "images/ingest:version_1" && google_cloud_run_v2_service.ingest["ingest"].template[0].containers[0].base_image_uri == "base"
    error_message = "The service runs what its function builds."
  }

  assert {
    condition     = merge({ for each in google_cloud_run_v2_service.ingest["ingest"].template[0].containers[0].env : each.name => each.value }) == merge(google_cloudfunctions2_function.stage["ingest"].service_config[0].environment_variables, { FUNCTION_TARGET = "handle" })
    error_message = "The service has the settings of its function."
  }

  assert {
    condition     = sum(concat([for each in google_cloudfunctions2_function.stage : each.service_config[0].max_instance_count * tonumber(each.service_config[0].available_cpu)], [for each in google_cloud_run_v2_service.ingest : each.template[0].scaling[0].max_instance_count * tonumber(each.template[0].containers[0].resources[0].limits.cpu)])) == 10
    error_message = "All together fit the quota of a new project."
  }

  assert {
    condition     = keys(google_monitoring_alert_policy.this) == ["clusters-silent", "clusters-unreachable", "credentials-expire", "dead-letters", "deletions-held", "errors", "ingest-errors", "misses", "oldest-message", "oldest-pending", "promotions-stalled", "requests-refused", "silent", "slow", "steps-fail", "throttles"] && length(google_monitoring_dashboard.this) == 1
    error_message = "There are alarms and a dashboard."
  }

  assert {
    condition     = [for name, each in google_monitoring_alert_policy.this : name if length(each.conditions[0].condition_absent) > 0] == ["silent"] && google_monitoring_alert_policy.this["silent"].conditions[0].condition_absent[0].duration == "600s"
    error_message = "Ten minutes without a call of the schedule alarm."
  }

  assert {
    condition     = google_monitoring_alert_policy.this["clusters-unreachable"].conditions[0].condition_prometheus_query_language[0].query == "sum by (cluster) (increase(logging_googleapis_com:user_bellhop_alerts{monitored_resource=\"cloud_run_revision\",alert=\"ClustersUnreachable\"}[5m])) > 0"
    error_message = "An incident names its cluster."
  }

  # A first apply creates the metrics, which Cloud Monitoring knows some minutes later.
  assert {
    condition     = alltrue([for each in google_monitoring_alert_policy.this : alltrue([for one in each.conditions[0].condition_prometheus_query_language : one.disable_metric_validation]) && alltrue([for one in each.conditions[0].condition_threshold : !strcontains(one.filter, "logging.googleapis.com/user/")])])
    error_message = "No policy is refused because a metric of lines is new."
  }

  assert {
    condition     = alltrue([for title in ["From event to applied (p50, p99)", "Clusters", "Refused requests", "Refused by Firestore"] : contains([for each in jsondecode(google_monitoring_dashboard.this[0].dashboard_json).mosaicLayout.tiles : each.widget.title], title)])
    error_message = "The dashboard shows latency, clusters and refusals."
  }

  assert {
    condition     = length(google_logging_saved_query.this) == 9 && length(google_billing_budget.monthly) == 0
    error_message = "Queries are saved, and nobody asked for a budget."
  }

  assert {
    condition     = strcontains(google_monitoring_alert_policy.this["errors"].conditions[0].condition_matched_log[0].filter, "NOT log_id(\"run.googleapis.com/requests\")")
    error_message = "A request that failed counts by the function's own line alone."
  }

  assert {
    condition     = { for each in google_artifact_registry_repository.images.cleanup_policies : each.id => each.action } == { delete-old = "DELETE", keep-newest = "KEEP" }
    error_message = "Old images are deleted, and never what a function runs."
  }

  assert {
    condition     = alltrue([for each in ["connectgateway", "container", "gkehub"] : !contains(keys(google_project_service.this), each)])
    error_message = "Who has no GKE clusters needs no service of theirs."
  }

  assert {
    condition     = google_pubsub_subscription.inbox["apply"].push_config[0].push_endpoint == "https://service-ew.a.run.app/projects/acme/topics/bellhop-apply"
    error_message = "A push says by its path which inbox it is of."
  }

  assert {
    condition     = google_pubsub_subscription.inbox["apply"].dead_letter_policy[0].max_delivery_attempts == 24
    error_message = "Pub/Sub buries later than the stages do."
  }

  assert {
    condition     = length(google_kms_crypto_key_iam_member.agent) == 0 && length(google_secret_manager_secret.key["sealing"].replication[0].auto) == 1
    error_message = "Without a key of one's own Google's seal."
  }

  assert {
    condition     = length(google_logging_project_bucket_config.own) == 0 && output.bellhop.logs == "projects/acme"
    error_message = "Lines for thirty days are in the project's own bucket."
  }

  assert {
    condition     = output.bellhop.ingest_url == "https://bellhop-ingest-123456789012.europe-west1.run.app"
    error_message = "Senders are told the address that a service has by its name."
  }

  assert {
    condition     = google_storage_bucket.guard.force_destroy == false
    error_message = "What guards the rest is not destroyed while it has something in it."
  }
}

# The project's tests see that nothing is to be done, the sealing key least of all.
run "does_nothing_the_second_time" {
  command = plan
}

run "has_no_topic_for_charts_unless_asked" {
  command = plan

  assert {
    condition     = keys(google_pubsub_topic.inbox) == ["apply", "confirm", "deploy", "evaluate", "patient", "probe", "review", "status", "sweep"] && keys(google_pubsub_subscription.inbox) == keys(google_pubsub_topic.inbox) && keys(google_pubsub_topic.dead) == keys(google_pubsub_topic.inbox)
    error_message = "Who has no charts has no topic for them."
  }

  assert {
    condition     = [for each in keys(google_pubsub_topic_iam_member.publish) : each if strcontains(each, "charts")] == []
    error_message = "Nobody hands charts over."
  }
}

run "deploys_charts_by_a_function_of_their_own" {
  command = plan

  variables {
    charts    = true
    network   = { network = "private", subnetwork = "functions" }
    functions = { charts = { memory = 2048 } }
  }

  assert {
    condition     = sum([for each in google_cloudfunctions2_function.stage : each.service_config[0].max_instance_count]) + google_cloud_run_v2_service.ingest["ingest"].template[0].scaling[0].max_instance_count == 10
    error_message = "Charts have a share of the quota of a new project."
  }

  assert {
    condition     = google_storage_bucket_object.source["charts"].source == "./tests/packages/charts-${local.build_id}.zip" && google_cloudfunctions2_function.stage["charts"].service_config[0].environment_variables.BELLHOP_HELM == "/workspace/helm/helm" && google_cloudfunctions2_function.stage["charts"].service_config[0].environment_variables.BELLHOP_KUBECTL == "/workspace/kubectl/kubectl"
    error_message = "Helm and kubectl are in the source, where BELLHOP_HELM and BELLHOP_KUBECTL say."
  }

  assert {
    condition     = google_cloudfunctions2_function.stage["charts"].service_config[0].available_memory == "2048Mi" && google_cloudfunctions2_function.stage["charts"].service_config[0].max_instance_request_concurrency == 4
    error_message = "Its sizes can be set as those of the others."
  }

  assert {
    condition     = length(google_cloudfunctions2_function.stage["charts"].service_config[0].direct_vpc_network_interface) == 1
    error_message = "Charts call API servers."
  }

  assert {
    condition     = google_pubsub_subscription.inbox["charts"].ack_deadline_seconds == 300 && contains(keys(google_pubsub_subscription.dead), "charts") && contains(keys(google_cloud_run_v2_service_iam_member.push), "charts")
    error_message = "Charts have a topic that is pushed to them, and one for its dead letters."
  }

  assert {
    condition     = [for each in keys(google_pubsub_topic_iam_member.publish) : each if strcontains(each, "charts")] == ["charts-apply", "charts-charts", "charts-deploy", "charts-status", "charts-sweep", "deploy-charts", "group:operators@example.com-charts", "schedule-charts"]
    error_message = "Deploy hands charts over, and what is left of them or rested comes again."
  }

  assert {
    condition     = local.opening["charts"] == { who = "charts", start = "kubeconfig", role = "read_secrets" } && contains(keys(google_project_iam_member.records), "charts") && contains(keys(google_storage_bucket_iam_member.blobs), "charts") && contains(keys(google_secret_manager_secret_iam_member.key), "charts-sealing")
    error_message = "It has the rights by which deploy applies a profile."
  }
}

run "deploys_charts_that_are_judged_by_cel" {
  command = plan

  variables {
    charts = true
    cel    = true
  }

  assert {
    condition     = google_storage_bucket_object.source["charts"].source == "./tests/packages/charts-cel-${local.build_id}.zip"
    error_message = "Charts are judged as all that is deployed."
  }
}

run "hears_no_events_unless_asked" {
  command = plan

  assert {
    condition     = length(google_eventarc_trigger.this) + length([for each in keys(google_service_account.this) : each if each == "events"]) + length(google_project_iam_member.events) + length(google_project_iam_member.bucket_events) + length(google_cloud_run_v2_service_iam_member.events) == 0
    error_message = "Who names no rules has neither a trigger nor an account for it."
  }

  assert {
    condition     = !contains(keys(google_project_service.this), "eventarc")
    error_message = "Nothing is switched on that nobody needs."
  }
}

run "hears_what_rules_name" {
  command = plan

  override_resource {
    target          = google_service_account.this["events"]
    override_during = plan
    values          = { member = "events", email = "bellhop-events@acme.iam.gserviceaccount.com" }
  }

  variables {
    event_rules = {
      uploads = { cluster = "fleet/east", matching = { type = "google.cloud.storage.object.v1.finalized", bucket = "shop" }, location = "eu" }
      images  = { cluster = "fleet/west", matching = { type = "google.cloud.audit.log.v1.written", resourceName = "projects/*/images" } }
    }
  }

  assert {
    condition     = { for name, each in google_eventarc_trigger.this : name => "${each.location} ${each.destination[0].cloud_run_service[0].path}" } == { images = "europe-west1 /clusters/fleet/west", uploads = "eu /clusters/fleet/east" }
    error_message = "A rule says where its events happen and for which cluster they count."
  }

  assert {
    condition     = alltrue([for each in google_eventarc_trigger.this : each.service_account == "bellhop-events@acme.iam.gserviceaccount.com" && each.destination[0].cloud_run_service[0].service == "bellhop-events"])
    error_message = "All are of one account, and call the function that hears them."
  }

  assert {
    condition     = [for each in google_eventarc_trigger.this["images"].matching_criteria : each.operator if each.attribute == "resourceName"] == ["match-path-pattern"]
    error_message = "A value with a * is a pattern."
  }

  assert {
    condition     = google_cloud_run_v2_service_iam_member.events["events"].name == "bellhop-events" && google_cloud_run_v2_service_iam_member.events["events"].member == "events" && google_cloud_run_v2_service_iam_member.events["events"].role == "roles/run.invoker"
    error_message = "Nobody but the triggers' account calls that function."
  }

  assert {
    condition     = google_project_iam_member.events["events"].role == "roles/eventarc.eventReceiver" && google_project_iam_member.events["events"].member == "events"
    error_message = "The account receives events."
  }

  assert {
    condition     = google_cloud_run_v2_service.ingest["ingest"].name == "bellhop-ingest" && length([for each in google_cloud_run_v2_service.ingest["ingest"].template[0].containers[0].env : each if each.name == "FUNCTION_TARGET" && each.value == "handle"]) == 1
    error_message = "What anybody may call is the service that asks for tokens."
  }

  assert {
    condition     = google_project_iam_member.bucket_events[0].role == "roles/pubsub.publisher" && google_project_iam_member.bucket_events[0].member == "serviceAccount:service-123456789012@gs-project-accounts.iam.gserviceaccount.com" && contains(keys(google_project_service_identity.agent), "eventarc")
    error_message = "Cloud Storage may publish, and Eventarc has its account."
  }

  assert {
    condition     = { for stage, each in google_cloudfunctions2_function.stage : stage => each.build_config[0].entry_point if each.build_config[0].entry_point != "handle" } == { events = "hear" }
    error_message = "One function believes whom Google lets in, and no other does."
  }

  assert {
    condition     = google_cloudfunctions2_function.stage["events"].service_config[0].ingress_settings == "ALLOW_INTERNAL_ONLY" && google_cloudfunctions2_function.stage["events"].service_config[0].service_account_email == google_service_account.this["ingest"].email
    error_message = "It cannot be called from outside, and may do what ingest may."
  }
}

run "refuses_a_cluster_of_a_rule" {
  command         = plan
  expect_failures = [var.event_rules]

  variables {
    event_rules = { uploads = { cluster = "east", matching = { type = "any" } } }
  }
}

run "refuses_a_rule_without_a_type" {
  command         = plan
  expect_failures = [var.event_rules]

  variables {
    event_rules = { uploads = { cluster = "fleet/east", matching = { bucket = "shop" } } }
  }
}

run "follows_what_is_said" {
  command = plan

  variables {
    cel                = true
    functions          = { deploy = { timeout = 100 } }
    network            = { network = "private", subnetwork = "functions" }
    gke_clusters       = ["projects/acme/locations/europe-west1/clusters/*", "projects/other/locations/us-east1-b/clusters/one"]
    kms_key            = "projects/acme/locations/europe-west1/keyRings/ring/cryptoKeys/key"
    ingest_allow       = ["203.0.113.0/24"]
    log_retention_days = 90

    configuration_cluster = true
  }

  assert {
    condition     = { for each in ["sweep", "sweep-abandoned"] : local.opening[each].start => local.opening[each].role } == { abandoned = "write_secrets", kubeconfig = "write_secrets" }
    error_message = "Sweep may store and delete the kubeconfigs of clusters that objects register."
  }

  assert {
    condition     = google_storage_bucket_object.source["evaluate"].source == "./tests/packages/evaluate-cel-${local.build_id}.zip" && google_storage_bucket_object.source["deploy"].source == "./tests/packages/deploy-cel-${local.build_id}.zip" && google_storage_bucket_object.source["sweep"].source == "./tests/packages/sweep-${local.build_id}.zip"
    error_message = "Only deploy and evaluate judge by rules in CEL."
  }

  assert {
    condition     = alltrue([for each in ["connectgateway", "container", "gkehub"] : contains(keys(google_project_service.this), each)])
    error_message = "What is asked of GKE is asked in this project's name."
  }

  assert {
    condition     = google_pubsub_subscription.inbox["apply"].ack_deadline_seconds == 100
    error_message = "A subscription waits for as long as the function that it feeds may take."
  }

  assert {
    condition     = google_cloudfunctions2_function.stage["deploy"].service_config[0].available_memory == "1024Mi"
    error_message = "What is not said stays as it is."
  }

  assert {
    condition     = [for stage, each in google_cloudfunctions2_function.stage : stage if length(each.service_config[0].direct_vpc_network_interface) > 0] == ["deploy", "sweep"]
    error_message = "Only deploy and sweep call API servers."
  }

  assert {
    condition     = google_cloudfunctions2_function.stage["sweep"].service_config[0].direct_vpc_egress == "VPC_EGRESS_PRIVATE_RANGES_ONLY"
    error_message = "Calls to Google's services do not go through the network."
  }

  assert {
    condition     = toset([for each in google_project_iam_member.clusters : "${each.member} ${each.project} ${each.condition[0].expression}"]) == toset(flatten([for each in ["acme resource.name.startsWith(\"projects/acme/locations/europe-west1/clusters/\")", "other resource.name == \"projects/other/locations/us-east1-b/clusters/one\""] : ["deploy ${each}", "sweep ${each}", "group:operators@example.com ${each}"]]))
    error_message = "Only deploy, sweep and operators ask where a cluster is."
  }

  assert {
    condition     = keys(google_kms_crypto_key_iam_member.agent) == ["artifactregistry", "cloudfunctions", "eventarc", "firestore", "logging", "pubsub", "run", "secretmanager", "storage"] && keys(time_sleep.keys) == keys(google_kms_crypto_key_iam_member.agent)
    error_message = "Each service may use the key, which is waited for."
  }

  assert {
    condition     = alltrue([for each in ["artifactregistry", "cloudfunctions", "cloudkms", "eventarc", "run"] : contains(keys(google_project_service.this), each)])
    error_message = "Each service that uses the key is enabled, and so is the key's."
  }

  assert {
    condition     = google_artifact_registry_repository.images.kms_key_name == null && alltrue([for each in google_cloudfunctions2_function.stage : each.kms_key_name == null])
    error_message = "Images keep the key that they were created with, and functions that of their images."
  }

  assert {
    condition     = length(google_secret_manager_secret.key["sealing"].replication[0].auto) == 1 && length(google_firestore_database.records.cmek_config) == 0
    error_message = "What is lost when it is made anew keeps the key that it was made with."
  }

  assert {
    condition     = google_logging_project_bucket_config.own[0].retention_days == 90 && google_logging_project_exclusion.own[0].filter == google_logging_project_sink.own[0].filter
    error_message = "Lines are kept for as long as is said, and in no other bucket."
  }

  assert {
    condition     = [for each in google_project_iam_member.logs : each.condition[0].expression] == [for each in range(2) : "resource.name == \"projects/acme/locations/europe-west1/buckets/bellhop/views/_AllLogs\""]
    error_message = "People read the lines of this installation alone."
  }

  assert {
    condition     = local.environments.ingest.BELLHOP_INGEST_ALLOW == "203.0.113.0/24"
    error_message = "Ingest alone is told who may send."
  }
}

run "seals_by_a_key_from_the_first_apply" {
  command   = plan
  state_key = "sealed"

  variables {
    kms_key = "projects/acme/locations/europe-west1/keyRings/ring/cryptoKeys/key"
  }

  assert {
    condition     = length(google_secret_manager_secret.key["sealing"].replication[0].user_managed) == 1 && length(google_secret_manager_secret.key["sealing"].replication[0].auto) == 0
    error_message = "A secret under a region's key is in that region."
  }

  assert {
    condition     = google_secret_manager_secret.key["sealing"].replication[0].user_managed[0].replicas[0].customer_managed_encryption[0].kms_key_name == var.kms_key && local.environments.sweep.BELLHOP_SECRET_REGION == "europe-west1" && local.environments.sweep.BELLHOP_KMS_KEY == var.kms_key
    error_message = "Clusters' secrets lie where the sealing key does, under the same key."
  }

  assert {
    condition     = google_firestore_database.records.cmek_config[0].kms_key_name == var.kms_key && google_storage_bucket.blobs.encryption[0].default_kms_key_name == var.kms_key && google_pubsub_topic.inbox["apply"].kms_key_name == var.kms_key
    error_message = "All that keeps what clusters have is sealed by it."
  }

  assert {
    condition     = google_artifact_registry_repository.images.kms_key_name == var.kms_key && toset([for each in google_cloudfunctions2_function.stage : each.kms_key_name]) == toset([var.kms_key]) && google_cloud_run_v2_service.ingest["ingest"].template[0].encryption_key == var.kms_key
    error_message = "Images are encrypted with it, and so is what runs them."
  }

  assert {
    condition     = google_logging_project_bucket_config.own[0].cmek_settings[0].kms_key_name == var.kms_key && google_logging_project_bucket_config.own[0].retention_days == 30
    error_message = "Log lines are in a bucket that is encrypted with it."
  }
}

run "keeps_secrets_in_its_region_and_takes_a_restored_database" {
  command   = plan
  state_key = "regional"

  variables {
    secret_replication  = "regional"
    database            = "bellhop-restored"
    deletion_protection = true
  }

  assert {
    condition     = google_firestore_database.records.name == "bellhop-restored" && google_firestore_database.records.point_in_time_recovery_enablement == "POINT_IN_TIME_RECOVERY_ENABLED" && google_firestore_database.records.delete_protection_state == "DELETE_PROTECTION_ENABLED"
    error_message = "A restored database has the settings of any other."
  }

  assert {
    condition     = toset([for each in concat(values(google_firestore_field.unindexed), [google_firestore_field.expires, google_firestore_field.place, google_firestore_backup_schedule.daily]) : each.database]) == toset(["bellhop-restored"]) && toset([for each in google_project_iam_member.records : each.condition[0].expression]) == toset(["resource.name == \"projects/acme/databases/bellhop-restored\""])
    error_message = "Expiry, indexes, backups and grants are those of the restored database."
  }

  assert {
    condition     = output.bellhop.database == "bellhop-restored" && local.environment.BELLHOP_DATABASE == "bellhop-restored" && google_cloudfunctions2_function.stage["sweep"].name == "bellhop-sweep" && strcontains(google_monitoring_dashboard.this[0].dashboard_json, "bellhop-restored")
    error_message = "Functions, the CLI and the dashboard read it, and nothing else has another name."
  }

  assert {
    condition     = google_secret_manager_secret.key["sealing"].replication[0].user_managed[0].replicas[0].location == "europe-west1" && length(google_secret_manager_secret.key["sealing"].replication[0].user_managed[0].replicas[0].customer_managed_encryption) == 0
    error_message = "A region needs no key of one's own."
  }

  assert {
    condition     = output.bellhop.secret_region == "europe-west1" && output.bellhop.kms_key == "" && local.environments.sweep.BELLHOP_SECRET_REGION == "europe-west1"
    error_message = "Who writes clusters' secrets knows where they are to lie."
  }
}

run "leaves_out_what_is_not_wanted" {
  command = plan

  variables {
    network               = { network = "private", subnetwork = "functions", all_traffic = true }
    monthly_budget        = { billing_account = "000000-AAAAAA-000000", amount = 50 }
    alarms                = false
    dashboard             = false
    ingest_from           = "balancer"
    ingest_invokers       = ["allUsers"]
    destroy_with_clusters = true
  }

  assert {
    condition     = length(google_monitoring_alert_policy.this) + length(google_monitoring_dashboard.this) + length(google_logging_saved_query.this) == 0
    error_message = "Alarms and dashboard can be left out."
  }

  assert {
    condition     = one(google_billing_budget.monthly[0].amount[0].specified_amount).units == "50" && contains(keys(google_project_service.this), "billingbudgets") && length(google_billing_budget.monthly[0].all_updates_rule) == 0
    error_message = "A budget is of the project, and its service is enabled."
  }

  assert {
    condition     = google_cloudfunctions2_function.stage["sweep"].service_config[0].direct_vpc_egress == "VPC_EGRESS_ALL_TRAFFIC"
    error_message = "All calls can go through the network."
  }

  assert {
    condition     = google_cloudfunctions2_function.stage["ingest"].service_config[0].ingress_settings == "ALLOW_INTERNAL_AND_GCLB"
    error_message = "Nobody goes round a load balancer."
  }

  assert {
    condition     = google_cloud_run_v2_service_iam_member.ingest["allUsers"].name == "bellhop-ingest" && length(google_cloud_run_v2_service.ingest) == 0
    error_message = "Cloud Run may check callers, and then the function has the grant."
  }

  assert {
    condition     = local.all_instances == 10 && google_cloudfunctions2_function.stage["ingest"].service_config[0].max_instance_count == local.functions.ingest.instances
    error_message = "The function has the instances of the service that it stands for."
  }

  assert {
    condition     = google_storage_bucket.guard.force_destroy
    error_message = "Who applied that it may be destroyed has been asked already."
  }
}

run "refuses_who_is_no_principal" {
  command         = plan
  expect_failures = [var.ingest_invokers]

  variables {
    ingest_invokers = ["everybody"]
  }
}

run "refuses_a_grant_to_everybody" {
  command         = plan
  expect_failures = [var.readers]

  variables {
    readers = ["allUsers"]
  }
}

run "refuses_a_name" {
  command         = plan
  expect_failures = [var.name]

  variables {
    name = "Bellhop"
  }
}

run "refuses_a_name_of_googles" {
  command         = plan
  expect_failures = [var.name]

  variables {
    name = "bellhop-google"
  }
}

run "refuses_a_setting" {
  command         = plan
  expect_failures = [var.settings]

  variables {
    settings = { sweep_intervall = 600 }
  }
}

run "takes_a_word_for_a_setting" {
  command = plan

  variables {
    settings = { adopt = "always", turn = 30, egress_allow = "charts.example.com, *.example.org,10.8.0.0/16,public" }
  }

  assert {
    condition     = local.environment.BELLHOP_ADOPT == "always" && local.environment.BELLHOP_TURN == "30"
    error_message = "Functions are not told the settings as they are given."
  }
}

run "refuses_another_word" {
  command         = plan
  expect_failures = [var.settings]

  variables {
    settings = { adopt = "never", egress_allow = "https://charts.example.com" }
  }
}

run "refuses_a_word_for_a_number" {
  command         = plan
  expect_failures = [var.settings]

  variables {
    settings = { turn = "long" }
  }
}

run "refuses_a_stage" {
  command         = plan
  expect_failures = [var.functions]

  variables {
    functions = { execute = { memory = 512 } }
  }
}

run "refuses_a_time_out" {
  command         = plan
  expect_failures = [var.functions]

  variables {
    functions = { sweep = { timeout = 601 } }
  }
}

run "refuses_too_little_memory" {
  command         = plan
  expect_failures = [var.functions]

  variables {
    functions = { sweep = { memory = 256 } }
  }
}

run "refuses_more_instances_than_are_allowed" {
  command         = plan
  expect_failures = [time_sleep.grants]

  variables {
    functions = { deploy = { instances = 100 } }
  }
}

run "refuses_too_few_instances" {
  command         = plan
  expect_failures = [var.instances]

  variables {
    instances = 9
  }
}

run "refuses_a_gke_cluster" {
  command         = plan
  expect_failures = [var.gke_clusters]

  variables {
    gke_clusters = ["production"]
  }
}

run "refuses_more_gke_clusters_than_iam_takes" {
  command         = plan
  expect_failures = [var.gke_clusters]

  variables {
    gke_clusters = [for each in range(21) : "projects/acme/locations/europe-west1/clusters/c${each}"]
  }
}

run "refuses_a_key" {
  command         = plan
  expect_failures = [var.kms_key]

  variables {
    kms_key = "key"
  }
}

run "refuses_a_key_of_one_region_for_secrets_in_all" {
  command         = plan
  expect_failures = [var.secret_replication]

  variables {
    kms_key            = "projects/acme/locations/europe-west1/keyRings/ring/cryptoKeys/key"
    secret_replication = "automatic"
  }
}

run "refuses_another_way_to_keep_secrets" {
  command         = plan
  expect_failures = [var.secret_replication]

  variables {
    secret_replication = "everywhere"
  }
}

run "refuses_a_range_of_addresses_and_more_attempts_than_are_counted" {
  command         = plan
  expect_failures = [var.ingest_allow, var.settings]

  variables {
    ingest_allow = ["203.0.113.7"]
    settings     = { attempts = 51 }
  }
}

run "refuses_addresses_that_nobody_sees" {
  command         = plan
  expect_failures = [var.ingest_allow]

  variables {
    ingest_allow = ["203.0.113.0/24"]
    ingest_from  = "balancer"
  }
}

run "refuses_a_place_to_send_from_and_a_setting_that_no_function_reads" {
  command         = plan
  expect_failures = [var.ingest_from, var.settings]

  variables {
    ingest_from = "everywhere"
    settings    = { workers = 0 }
  }
}

run "refuses_days_that_lines_are_not_kept" {
  command         = plan
  expect_failures = [var.log_retention_days]

  variables {
    log_retention_days = 0
  }
}

run "refuses_days_that_backups_are_not_kept_and_a_name_of_a_database" {
  command         = plan
  expect_failures = [var.recovery_days, var.database]

  variables {
    recovery_days = 99
    database      = "Restored"
  }
}

run "refuses_an_age" {
  command         = plan
  expect_failures = [var.oldest_message_minutes]

  variables {
    oldest_message_minutes = 1
  }
}

run "refuses_a_provider_without_a_region" {
  command         = plan
  expect_failures = [data.google_client_config.here]

  override_data {
    target = data.google_client_config.here
    values = { project = "acme", region = null }
  }
}
