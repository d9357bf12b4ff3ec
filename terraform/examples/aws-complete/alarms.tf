resource "aws_sns_topic" "alarms" {
  name = "bellhop-production-alarms"
}
