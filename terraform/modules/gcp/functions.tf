locals {
  stages = merge({
    ingest   = { memory = 512, timeout = 30, concurrency = 40, instances = 20, warm = 0 }
    evaluate = { memory = 1024, timeout = 60, concurrency = 8, instances = 40, warm = 0 }
    deploy   = { memory = 1024, timeout = 120, concurrency = 8, instances = 40, warm = 0 }
    sweep    = { memory = 1024, timeout = 300, concurrency = 4, instances = 20, warm = 0 }
    schedule = { memory = 512, timeout = 60, concurrency = 1, instances = 1, warm = 0 }
    }, {
    # Helm or kubectl takes a hundred megabytes a message.
    for each in local.charts : each => { memory = 1024, timeout = 300, concurrency = 4, instances = 20, warm = 0 }
  })

  functions = {
    for stage, usual in local.stages : stage => {
      for what, value in usual : what => coalesce(try(var.functions[stage][what], null), value)
    }
  }

  # Those, and what hears Google's own events, if some count: it is ingest behind another door.
  deployed = merge(local.functions, { for each in local.hearing : each => merge(local.functions.ingest, { warm = 0 }) })
  stage_of = { for each in keys(local.deployed) : each => contains(local.hearing, each) ? "ingest" : each }

  # Those that judge objects by rules, of sources and of checks, with CEL's runtime if it is wanted.
  judging = toset(concat(["deploy", "evaluate"], local.charts))

  # Those that call API servers, of which none is placed where there is no network.
  reaching = toset(concat(["deploy", "sweep"], local.charts))
  placed   = var.network == null ? toset([]) : local.reaching
  egress   = try(var.network.all_traffic, false) ? "VPC_EGRESS_ALL_TRAFFIC" : "VPC_EGRESS_PRIVATE_RANGES_ONLY"

  known_settings = toset([
    "adopt", "attempts", "body_limit", "deletion_agreement", "deletion_floor", "deletion_share",
    "egress_allow", "hold_agreement", "hold_from", "hold_share", "hold_window", "ledger_days", "ledger_megabytes",
    "named_clusters", "retry_ceiling", "retry_first", "retry_longest", "revisions",
    "script_first_seconds", "script_memory", "script_seconds", "sweep_bytes", "sweep_interval",
    "template_output", "template_seconds", "turn", "visibility", "workers",
  ])

  may_be_zero = toset(["deletion_floor", "deletion_share", "hold_agreement", "hold_share", "named_clusters", "revisions"])

  environment = merge(
    { for name, value in var.settings : "BELLHOP_${upper(name)}" => value },
    {
      BELLHOP_PROJECT           = local.project
      BELLHOP_DATABASE          = google_firestore_database.records.name
      BELLHOP_BUCKET            = google_storage_bucket.blobs.name
      BELLHOP_TOPICS            = jsonencode({ for inbox, topic in google_pubsub_topic.inbox : inbox => topic.name })
      BELLHOP_SECRETS           = var.name
      BELLHOP_KEY_SECRET        = google_secret_manager_secret.key["sealing"].secret_id
      BELLHOP_INGEST_KEY_SECRET = google_secret_manager_secret.key["ingest"].secret_id
      # Otherwise gRPC writes what it thinks of its connections, in lines that are no JSON.
      GRPC_VERBOSITY = "ERROR"
    },
  )

  # Only a stage that needs it knows more.
  environments = {
    ingest   = merge(local.ingest_key, length(var.ingest_allow) > 0 ? { BELLHOP_INGEST_ALLOW = join(",", var.ingest_allow) } : {})
    evaluate = {}
    deploy   = {}
    charts   = { BELLHOP_HELM = "/workspace/helm/helm", BELLHOP_KUBECTL = "/workspace/kubectl/kubectl" }
    sweep    = merge({ BELLHOP_INGEST_URL = local.ingest_url }, local.secret_region == "" ? {} : { BELLHOP_SECRET_REGION = local.secret_region }, var.kms_key == null ? {} : { BELLHOP_KMS_KEY = var.kms_key })
    schedule = { BELLHOP_GUARD = local.guard }
    events   = local.ingest_key
  }

  ingest_key = { BELLHOP_KEY_SECRET = google_secret_manager_secret.key["ingest"].secret_id, BELLHOP_INGEST_KEY_SECRET = "" }

  addresses = { for stage, function in google_cloudfunctions2_function.stage : stage => function.service_config[0].uri }
}

# Sources are built by Google when a function is made, or its source has another name.
resource "google_storage_bucket" "source" {
  project                     = local.with.storage
  name                        = "${var.name}-${local.project}-source"
  location                    = local.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true
  labels                      = local.labels

  dynamic "encryption" {
    for_each = local.keys

    content {
      default_kms_key_name = encryption.value
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.agent]
}

resource "google_storage_bucket_object" "source" {
  for_each = local.functions

  bucket = google_storage_bucket.source.name
  name   = local.packages[each.key]
  source = "${var.packages}/${local.packages[each.key]}"

  lifecycle {
    precondition {
      condition     = length(local.stale_packages) == 0
      error_message = "The folder ${var.packages} lacks packages of this module's sources, or has them with other sums than its SHA256SUMS: ${join(", ", local.stale_packages)}. Run `make package` in the checkout that the module is part of, or take the packages of its release."
    }
  }
}

resource "google_cloudfunctions2_function" "stage" {
  for_each = local.deployed

  project     = local.with.cloudfunctions
  location    = local.region
  name        = "${var.name}-${each.key}"
  description = "Bellhop ${var.name}: ${each.key}"
  labels      = local.labels

  build_config {
    runtime           = "python313"
    entry_point       = contains(local.hearing, each.key) ? "hear" : "handle"
    service_account   = google_service_account.this["build"].id
    docker_repository = google_artifact_registry_repository.images.id

    source {
      storage_source {
        bucket = google_storage_bucket.source.name
        object = google_storage_bucket_object.source[local.stage_of[each.key]].name
      }
    }
  }

  service_config {
    service_account_email            = google_service_account.this[local.stage_of[each.key]].email
    available_cpu                    = "1"
    available_memory                 = "${each.value.memory}Mi"
    timeout_seconds                  = each.value.timeout
    max_instance_request_concurrency = each.value.concurrency
    max_instance_count               = each.value.instances
    min_instance_count               = each.value.warm
    all_traffic_on_latest_revision   = true
    ingress_settings                 = each.key == "ingest" ? local.ingress : "ALLOW_INTERNAL_ONLY"
    environment_variables            = merge(local.environment, local.environments[each.key], { THREADS = tostring(each.value.concurrency) })
    direct_vpc_egress                = contains(local.placed, each.key) ? local.egress : null

    dynamic "direct_vpc_network_interface" {
      for_each = contains(local.placed, each.key) ? [var.network] : []

      content {
        network    = direct_vpc_network_interface.value.network
        subnetwork = direct_vpc_network_interface.value.subnetwork
        tags       = direct_vpc_network_interface.value.tags
      }
    }
  }

  # A function that runs before it may read the key fails once for nothing; so does a build.
  depends_on = [
    google_artifact_registry_repository_iam_member.build,
    google_project_iam_member.build,
    google_project_iam_member.records,
    google_project_iam_member.secrets,
    google_project_iam_member.sources,
    google_project_service.this,
    google_secret_manager_secret_iam_member.key,
    google_secret_manager_secret_version.key,
    google_storage_bucket_iam_member.blobs,
  ]
}

# What Google has built: in no repository that functions of others share.
resource "google_artifact_registry_repository" "images" {
  project       = local.with.artifactregistry
  location      = local.region
  repository_id = var.name
  description   = "What the functions of Bellhop ${var.name} run"
  format        = "DOCKER"
  labels        = local.labels

  # Each build leaves an image. The newest of a package, which its function runs, is kept.
  cleanup_policies {
    id     = "keep-newest"
    action = "KEEP"

    most_recent_versions {
      keep_count = 3
    }
  }

  cleanup_policies {
    id     = "delete-old"
    action = "DELETE"

    condition {
      tag_state  = "ANY"
      older_than = "604800s"
    }
  }
}

# The account that builds functions has only the permissions that a build needs. It reads the sources
# in our bucket, and in the one that Google copies them to.
resource "google_artifact_registry_repository_iam_member" "build" {
  project    = local.project
  location   = local.region
  repository = google_artifact_registry_repository.images.repository_id
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.this["build"].member
}

resource "google_project_iam_member" "build" {
  project = local.project
  role    = "roles/logging.logWriter"
  member  = google_service_account.this["build"].member
}

resource "google_project_iam_member" "sources" {
  project = local.project
  role    = "roles/storage.objectViewer"
  member  = google_service_account.this["build"].member

  condition {
    title      = "${var.name}-sources"
    expression = join(" || ", [for each in ["${var.name}-${local.project}-source", "gcf-v2-"] : "resource.name.startsWith(\"projects/_/buckets/${each}\")"])
  }
}
