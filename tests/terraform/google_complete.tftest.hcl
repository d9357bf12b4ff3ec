# The complete example, applied to a project that has nothing yet. Google's answers are mocked.
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
}

variables {
  project = "acme"
  email   = "platform@example.com"
}

run "applies_from_nothing" {
  assert {
    condition     = module.bellhop.bellhop.kms_key == local.kms_key
    error_message = "The key of the example encrypts the installation."
  }
}
